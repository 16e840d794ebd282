// The tolerances of paths and of what is published, in one table. f is near ±1 on the margin, whatever the data, so the
// violation of a condition is absolute; ε = 2⁻⁵² is a rounding.
#pragma once

const double EPS = 0x1p-52;

// Violations. Rounding of f = Σ c k leaves about ε Σα max k(x, x) / √n, seldom ten times ε Σα max k(x, x).
const double PROMISE = 1e-9;     // the largest violation of a condition, unless rounding explains more
const double ROUNDED = 10;       // times ε Σα max k(x, x): what rounding explains
const double CEILING = 1e-6;     // beyond which rounding explains nothing: it is near the width of the margin
const double MEASURED = 0.8;     // of a limit: below, a violation is within it also if measured again
const double MISSED = 1e-12;     // g beyond the margin by more than rounding, of a point that was not watched

// Along a path.
const double NOISE = 1e-14;      // a rate below this part of the terms of its sum is rounding: 45 ε
const double TIE = 1e-15;        // events closer than this in θ happen at once: 4 ε
const double SOUND = 1e-14;      // a pivot below this part of its diagonal is rounding: 45 ε
const double AT_BOUND = 1e-10;   // part of a bound within which α is moved to it before a restart
const double FLAT = 1e-16;       // curvature along a pair, to its terms, that is rounding: ε / 2
const double NEAR = 1e-3;        // how near pairs (SMO) get to the solution before a path takes over: LIBSVM's

// What is published.
const double SEEN = 0.1;         // over k(x, x): an α of 1e-9 of this adds less than the promise to f
const double WIDE = 4;           // how many times further from a threshold than it is itself everything has to be
const double SLACK = 1e-9;       // part of a bound by which c may be beyond it, as rounding
const double QUICK = 0x1p-20;    // how much smaller each correction of a margin is, by a factor that was carried
const double SLOW = 0.25;        // and by one that was just computed
const double DEPENDENT = 1e-12;  // part of its norm² that a row must have of its own to be independent
