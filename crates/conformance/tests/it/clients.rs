//! Programs that others wrote their clients for: client-go and the official client for Python.

use conformance::Story;

use crate::court::cases;

cases![client_go_lists_watches_patches_and_leads, the_python_client_lists_watches_patches_and_leases];

async fn client_go_lists_watches_patches_and_leads(s: &mut Story) {
    s.run("informer 2>/dev/null").await.ok().prints("second leads no more");
}

async fn the_python_client_lists_watches_patches_and_leases(s: &mut Story) {
    s.file("client.py", include_str!("../../clients/python/client.py"));
    s.run("python3 client.py").await.ok().prints("renewed from an old state -> 409 Conflict");
}
