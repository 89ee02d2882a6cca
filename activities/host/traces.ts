import type { GatewayControl } from '../../infra/gateway/control.ts';
import { sessionId } from '../../workflows/contracts/ids.ts';
import type { PolicyRef } from '../../workflows/contracts/policy.ts';
import { atBoundary } from '../boundary.ts';
import type { OpenTrace, SessionActivities } from '../interfaces/host.ts';

/**
 * Creates the activities that open and close sessions at the gateways of this host. Host worker and gateway each derive a
 * session's secret from its id.
 */
export function createTraceActivities(
  gateway: Pick<GatewayControl, 'open' | 'seal' | 'close' | 'minVersions' | 'upstream'>,
  resolvePolicy: (policy: OpenTrace['policy']) => Promise<PolicyRef | undefined>,
): SessionActivities {
  return {
    openTrace: ({ epoch, lifetimeMs, runKey, group, policy, upstream, ...settings }) =>
      atBoundary(async (signal) => {
        const session = sessionId(epoch);
        const opened = await gateway.open(
          {
            ...settings,
            session,
            expiresAt: Date.now() + lifetimeMs,
            group: runKey === null || group === null ? null : groupLabel(runKey, group),
            policy: upstream === undefined ? await resolvePolicy(policy) : undefined,
            upstream: upstream === undefined ? undefined : await gateway.upstream(upstream, signal),
          },
          signal,
        );
        return { session, contextLength: opened.contextLength };
      }),
    sealTrace: ({ epoch }) => atBoundary((signal) => gateway.seal(sessionId(epoch), signal)),
    closeTrace: ({ epoch }) => atBoundary((signal) => gateway.close(sessionId(epoch), signal)),
    readVersions: ({ runKey, groups }) =>
      atBoundary((signal) =>
        gateway.minVersions(
          groups.map((group) => groupLabel(runKey, group)),
          signal,
        ),
      ),
  };
}

const groupLabel = (runKey: string, group: number): string => `${runKey}/${group}`;
