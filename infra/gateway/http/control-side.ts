import type { RequestListener } from 'node:http';
import { z } from 'zod';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { failureKinds, isFailureType, TemperFailure } from '../../../workflows/contracts/failures.ts';
import { policyRef } from '../../../workflows/contracts/policy.ts';
import { servedVersions } from '../../engine/engine.ts';
import { adoption, openSession, versionPin } from '../control.ts';
import type { Sessions } from '../sessions/sessions.ts';
import type { PolicyEngines } from '../turns/policy-engines.ts';
import type { Upstreams } from '../upstream/upstreams.ts';
import { readJsonBody } from './body.ts';
import { sendJson } from './listener.ts';
import type { SessionSockets } from './session-sockets.ts';

const groupList = z.array(z.string());

export interface ControlSideDeps {
  readonly sessions: Sessions;
  readonly sockets: Pick<SessionSockets, 'open' | 'remove'>;
  readonly upstreams: Upstreams;
  readonly policies: PolicyEngines;
}

/** Serves the control side over HTTP; client.ts is the other end. Any process that reaches its socket may do anything. */
export function createControlSide({ sessions, sockets, upstreams, policies }: ControlSideDeps): RequestListener {
  const actions: Record<string, (id: string) => Promise<unknown>> = {
    status: (id) => sessions.status(id),
    async seal(id) {
      const summary = await sessions.seal(id);
      await sockets.remove(id);
      return summary;
    },
    close: async (id) => (await sessions.close(id)) ?? null,
    async upstream(id) {
      const { name, model } = await upstreams.find(id);
      return { name, model };
    },
  };

  async function answer(path: string, readBody: () => Promise<unknown>): Promise<unknown> {
    if (path === '/health') return { ready: true };
    if (path === '/serving') {
      const policy = policyRef.nullable().parse(await readBody());
      return servedVersions((await policies.of(policy ?? undefined)).engine);
    }
    if (path === '/pin-version') {
      const { policy, version } = versionPin.parse(await readBody());
      return (await policies.of(policy ?? undefined)).engine.pinVersion(version);
    }
    if (path === '/open') {
      const parsed = openSession.safeParse(await readBody());
      if (!parsed.success) throw new TemperFailure('InvalidInput', `open: ${z.prettifyError(parsed.error)}`);
      const opened = await sessions.open(parsed.data);
      await sockets.open(parsed.data.session, parsed.data.expiresAt);
      return opened;
    }
    if (path === '/adopt') {
      const { session, from } = adoption.parse(await readBody());
      const adopted = await sessions.adopt(session, from);
      if (adopted !== null && adopted !== 'sealed') await sockets.open(session, adopted.expiresAt);
      return adopted !== null;
    }
    if (path === '/min-versions') return sessions.minVersions(groupList.parse(await readBody()));
    const [, action = '', id = ''] = path.match(/^\/(status|seal|close|upstream)\/([^/]+)$/) ?? [];
    const act = actions[action];
    if (act === undefined) throw new TemperFailure('InvalidInput', `the gateway's control side has nothing at ${path}`);
    return act(decodeURIComponent(id));
  }

  return (request, response) => {
    answer(request.url ?? '', () => readJsonBody(request)).then(
      (body) => sendJson(response, 200, body),
      (error: unknown) => {
        const type = error instanceof TemperFailure && isFailureType(error.type) ? error.type : 'Internal';
        sendJson(response, failureKinds[type].retryable ? 503 : 422, { type, message: errorMessage(error) });
      },
    );
  };
}
