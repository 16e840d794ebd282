"""The desk: a store as web pages on this machine, for people without a terminal.

What is asked for is done by the commands, in their words; the pages show what they answer. Nothing
leaves the machine: the server listens on loopback, and a page loads one stylesheet and no script.
"""
