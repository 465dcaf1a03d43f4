mod built_ins;
mod judged;
mod laws;
mod units;
