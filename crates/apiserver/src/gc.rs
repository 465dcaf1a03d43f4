//! What happens to objects whose owners are gone.
