"""The file format: safetensors, JSON and one SHA-256 over every byte."""
