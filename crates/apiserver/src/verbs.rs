//! What can be done with objects.
