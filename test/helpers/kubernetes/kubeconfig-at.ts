import assert from 'node:assert/strict';
import { KubeConfig } from '@kubernetes/client-node';

/** A name in the certificate of every API server, whatever the address at which it is reached. */
const certifiedName = 'kubernetes';

/** Returns a kubeconfig with the rights of another, for a place that reaches the API server at an address of its own. */
export async function kubeconfigAt(path: string, addressOf: (server: URL) => Promise<string>): Promise<string> {
  const config = new KubeConfig();
  config.loadFromFile(path);
  const cluster = config.getCurrentCluster() ?? assert.fail(`expected a cluster in ${path}`);
  const { users, contexts, currentContext } = config;
  const server = `https://${await addressOf(new URL(cluster.server))}`;
  const clusters = [{ ...cluster, server, tlsServerName: certifiedName }];
  config.loadFromOptions({ clusters, users, contexts, currentContext });
  return config.exportConfig();
}
