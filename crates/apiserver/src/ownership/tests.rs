mod judged;
mod laws;
mod units;
