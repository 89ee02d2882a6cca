import type { Http2Session } from 'node:http2';

/** The interval of pings. The other end may be on a machine that is busy for a while, so only two unanswered ones count. */
const pingMs = 20_000;
const unansweredPings = 2;

/** Ends a session whose other end no longer answers, though its connection is open. */
export function endIfSilent(session: Http2Session): void {
  let unanswered = 0;
  const timer = setInterval(() => {
    if (session.destroyed) return;
    if (unanswered >= unansweredPings) return session.destroy();
    unanswered += 1;
    session.ping(() => {
      unanswered = 0;
    });
  }, pingMs).unref();
  session.once('close', () => clearInterval(timer));
}
