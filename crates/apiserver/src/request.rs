//! What a request asks for: path, query, body and accepted answers.
