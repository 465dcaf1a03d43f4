//! DHCP and proxy DHCP for machines that boot from the network.
