import { msToTs } from '@temporalio/common/lib/time.js';
import { connectClient, type TemporalTarget } from '../../../../infra/temporal/connection.ts';
import { until } from '../../until.ts';

/** The namespace that every server has, by which one connects before there is another. */
const system = 'temporal-system';
/** A server that starts on an empty database takes a while. */
const answersMs = 120_000;

/** Waits until the server answers, and creates the namespace of a target. A key must permit both. */
export async function createNamespace(target: TemporalTarget): Promise<void> {
  const { connection, close } = await until(
    () => connectClient({ ...target, namespace: system }).catch(() => null),
    answersMs,
  );
  try {
    const { namespace } = target;
    const workflowExecutionRetentionPeriod = msToTs('1 day');
    await connection.workflowService.registerNamespace({ namespace, workflowExecutionRetentionPeriod });
    // The server reads its namespaces every few seconds.
    await until(
      () =>
        connection.workflowService.describeTaskQueue({ namespace, taskQueue: { name: 'any' } }).then(
          () => true,
          () => false,
        ),
      answersMs,
    );
  } finally {
    await close();
  }
}
