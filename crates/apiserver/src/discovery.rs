//! What is served, told to clients: legacy lists and the aggregated document.
