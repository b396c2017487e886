"""Where documents and watched objects come from: files, the cluster, snapshots."""
