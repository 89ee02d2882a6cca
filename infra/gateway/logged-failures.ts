import type { GatewayError } from './gateway-error.ts';
import { limits } from './limits.ts';

const windowMs = 60_000;

/**
 * Passes on as many failed requests of each session as are to be logged in a minute: an agent that repeats them must not fill the
 * disk. The last of these has a note that says so; the note of the others is empty. A session of null stands for requests of which
 * none is known.
 */
export function limitFailures(
  report: (session: string | null, error: GatewayError, note: string) => void,
): (session: string | null, error: GatewayError) => void {
  let since = performance.now();
  const counts = new Map<string | null, number>();
  return (session, error) => {
    const now = performance.now();
    if (now - since >= windowMs) {
      since = now;
      counts.clear();
    }
    const count = (counts.get(session) ?? 0) + 1;
    counts.set(session, count);
    if (count > limits.loggedFailures) return;
    report(session, error, count < limits.loggedFailures ? '' : '; further ones of this minute are not logged');
  };
}
