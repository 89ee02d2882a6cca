import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createProxy } from '../../../infra/agents/relay/proxy.ts';
import { createSocketRoute } from '../../../infra/agents/relay/socket-route.ts';
import type { TestGateway } from './gateway.ts';

const retryMs = 1_000;

/** Starts the relay of a sandbox before a gateway, so that an agent's program reaches it in this process. */
export async function startRelay(gateway: TestGateway): Promise<AsyncDisposable & { readonly url: string }> {
  const relay = createProxy(createSocketRoute({ directory: gateway.options.sockets.agents, retryMs }));
  relay.listen(0, '127.0.0.1');
  await once(relay, 'listening');
  const { port } = relay.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      const closed = once(relay, 'close');
      relay.close();
      relay.closeAllConnections();
      await closed;
    },
  };
}
