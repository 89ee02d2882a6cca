/**
 * Runs inside a sandbox as an agent would: asks the relay turn after turn, and prints the times in ms as JSON. Arguments: the
 * relay's address, the number of turns, and the size of the history in bytes. The environment has the session's secret.
 */
import { Agent, request } from 'node:http';
import { createConversation } from '../gateway/conversation.ts';

const [address = '', turns = '', historyBytes = ''] = process.argv.slice(2);
/** The turns until a conversation begins again, by when it has grown by 5 KB. */
const turnsOfConversation = 12;
const agent = new Agent({ keepAlive: true });
const headers = { authorization: `Bearer ${process.env.SECRET}`, 'content-type': 'application/json' };

/** Returns the time in ms from the request to the end of its reply. */
function ask(body: string): Promise<number> {
  const startedAt = performance.now();
  return new Promise((resolve, reject) => {
    const sent = request(`${address}/v1/chat/completions`, { agent, method: 'POST', headers }, (reply) => {
      if (reply.statusCode !== 200) reject(new Error(`expected 200, got ${reply.statusCode}`));
      reply.resume().once('end', () => resolve(performance.now() - startedAt));
    });
    sent.once('error', reject);
    sent.end(body);
  });
}

let conversation = createConversation(Number(historyBytes));
const times: number[] = [];
for (let turn = 0; turn < Number(turns); turn += 1) {
  // A conversation grows with each turn, and a long one is not the size that is measured.
  if (turn % turnsOfConversation === 0) conversation = createConversation(Number(historyBytes));
  times.push(await ask(conversation.next(true)));
}
process.stdout.write(`${JSON.stringify(times)}\n`);
agent.destroy();
