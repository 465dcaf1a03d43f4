//! CustomResourceDefinitions: what they must look like, and what becomes of them.
