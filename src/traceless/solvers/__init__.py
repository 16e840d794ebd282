"""From knowledge to coefficients: correctly rounded, updated in place, with class weights."""
