mod decisions;
mod server;
mod stage;
mod storm;
mod terms;
