import { CancellationScope, isCancellation } from '@temporalio/workflow';
import type { Stage } from '../contracts/rollout.ts';
import { StageFailure } from './failure.ts';

/**
 * The loss of a rollout's host. The rollout notices it when a stage finds no worker, or learns of it when the host is declared
 * lost.
 */
export interface HostLoss {
  /** Begins an epoch on a host, with its fencing token. It may have the name of one that was lost before. */
  begin(host: string, token: string): void;
  /** Declares a host lost: the one of that generation, or whichever has the name. */
  declare(host: string, generation?: number): void;
  isLost(host: string): boolean;
  /** Runs a stage on a host, and ends it with the failure HostLost once the host is lost. */
  guard<Result>(host: string, stage: Stage, work: () => Promise<Result>): Promise<Result>;
}

export function createHostLoss(): HostLoss {
  const lost = new Set<string>();
  /** The generation of each host at the last epoch there. */
  const generations = new Map<string, number>();
  const running = new Map<CancellationScope, string>();
  return {
    begin(host, token) {
      lost.delete(host);
      generations.set(host, generationOf(token));
    },
    declare(host, generation) {
      // The loss of an earlier life of the host.
      if (generation !== undefined && generation < (generations.get(host) ?? 0)) return;
      lost.add(host);
      for (const [scope, on] of running) if (on === host) scope.cancel();
    },
    isLost: (host) => lost.has(host),
    async guard(host, stage, work) {
      if (lost.has(host)) throw hostLost(host, stage);
      // A scope within a cancelled one learns of it too late, and would start the stage.
      if (CancellationScope.current().consideredCancelled) return work();
      const scope = new CancellationScope();
      running.set(scope, host);
      try {
        return await scope.run(work);
      } catch (error) {
        const isOurs = lost.has(host) && isCancellation(error) && !CancellationScope.current().consideredCancelled;
        throw isOurs ? hostLost(host, stage) : error;
      } finally {
        running.delete(scope);
      }
    },
  };
}

/** Returns the generation in a fencing token, which is `<host>/<generation>`. */
const generationOf = (token: string): number => Number(token.slice(token.lastIndexOf('/') + 1));

const hostLost = (host: string, stage: Stage): StageFailure =>
  new StageFailure({ type: 'HostLost', message: `host ${host} was declared lost`, stage }, false);
