import { Context } from '@temporalio/activity';
import { toMs } from '../../workflows/algorithms/cost.ts';
import { readSpentSeconds, type SpentTime } from '../../workflows/contracts/spent-time.ts';

type Report = (details: unknown) => void;

/**
 * Adds the time that a stage ran to its result, with that of its earlier activity attempts: a failed one reports it by the
 * details of its last heartbeat, which the next one and its failure have. Waits in queues and between attempts do not count.
 */
export async function timed<Result extends object>(
  report: Report,
  work: (report: Report) => Promise<Result>,
): Promise<Result & { readonly seconds: number }> {
  const earlier = readSpentSeconds(Context.current().info.heartbeatDetails);
  const beganMs = performance.now();
  let latest: unknown;
  const spent = (): number => toMs(earlier + (performance.now() - beganMs) / 1000);
  const withTime = (): SpentTime => ({ ...(latest as object | undefined), spentSeconds: spent() });
  try {
    const result = await work((details) => {
      latest = details;
      report(withTime());
    });
    return { ...result, seconds: spent() };
  } catch (error) {
    report(withTime());
    throw error;
  }
}
