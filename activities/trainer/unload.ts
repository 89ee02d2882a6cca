import { log } from '@temporalio/activity';
import { journaledRuns, openJournal } from '../../infra/trainer/journal.ts';
import type { TrainerContext, TrainerDependencies } from './dependencies.ts';

/**
 * Unloads every model of the run except those kept. It is necessary because the session's heartbeats keep all models of this
 * worker loaded. The journal forgets a model only afterwards, and unloading a model that is gone is not an error. When the
 * trainer does not answer the work continues, and the model is unloaded the next time.
 */
export async function unloadAllBut(
  { trainer, journal, signal, limit }: UnloadContext,
  kept: readonly (string | null)[],
): Promise<void> {
  for (const modelId of Object.keys(journal.state.sequences)) {
    if (kept.includes(modelId)) continue;
    if (limit?.aborted === true) return;
    try {
      await trainer.unload(modelId, limit === undefined ? signal : AbortSignal.any([signal, limit]));
    } catch (error) {
      signal.throwIfAborted();
      log.warn('an unused model stays loaded for now', { model: modelId, error: String(error) });
      continue;
    }
    const { [modelId]: _, ...sequences } = journal.state.sequences;
    await journal.write({ sequences });
  }
}

interface UnloadContext extends Pick<TrainerContext, 'journal' | 'signal'> {
  readonly trainer: Pick<TrainerContext['trainer'], 'unload'>;
  /** Ends the attempts earlier than the work itself. Default: each may take as long as a request. */
  readonly limit?: AbortSignal;
}

/** The time in which a pool's trainer has to unload what ended runs left. One that hangs must not hold up runs elsewhere. */
const poolLimitMs = 15_000;

/** Unloads the models of runs that have ended, and ends their sessions with the trainer. */
export async function unloadEndedRuns(
  {
    journals,
    usedPolicies,
    ofRun,
    limitMs = poolLimitMs,
  }: Pick<TrainerDependencies, 'journals' | 'usedPolicies' | 'ofRun'> & { readonly limitMs?: number },
  runKey: string,
  signal: AbortSignal,
): Promise<void> {
  const used = await usedPolicies();
  const limits = new Map<string | undefined, AbortSignal>();
  for (const other of await journaledRuns(journals)) {
    if (other === runKey || used.has(other)) continue;
    try {
      const journal = await openJournal(journals, other);
      if (Object.keys(journal.state.sequences).length === 0) continue;
      const { pool } = journal.state;
      const { trainer } = await ofRun({ runKey: other, pool });
      // This comes first: if that run had not ended after all, it would load its last checkpoint again.
      await journal.write({ modelId: null, referenceId: null });
      const limit = limits.get(pool) ?? AbortSignal.timeout(limitMs);
      limits.set(pool, limit);
      await unloadAllBut({ trainer, journal, signal, limit }, []);
      trainer.close();
    } catch (error) {
      signal.throwIfAborted();
      log.warn('the journal of an earlier run could not be read or written; its models may stay loaded', {
        run: other,
        error: String(error),
      });
    }
  }
}
