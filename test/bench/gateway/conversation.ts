/** What one client says: a history of a given size, then turn by turn the reply of the gateway and something new. */
export interface Conversation {
  /** Body of the next request. */
  next(stream: boolean): string;
}

export const replyText = 'All done.';
/** About what a tool's result adds. */
const addedBytes = 300;
/** What a turn adds to the body of the next request, about. */
export const turnBytes = addedBytes + 100;
const words = 'the file has a function that returns the sum of its two arguments and a test that says so '.repeat(8);

export function createConversation(historyBytes: number): Conversation {
  const messages = [message('system', 'You repair programs.')];
  for (let bytes = 0; bytes < historyBytes; bytes += 2 * addedBytes) {
    messages.push(message('user', words.slice(0, addedBytes)), message('assistant', words.slice(0, addedBytes)));
  }
  // Kept as text: what is measured is the gateway, not the client.
  let said = messages.join(',');
  let turn = 0;
  return {
    next(stream) {
      const before = turn === 0 ? '' : `,${message('assistant', replyText)}`;
      turn += 1;
      said += `${before},${message('user', `${turn}: ${words.slice(0, addedBytes)}`)}`;
      return `{"model":"policy","stream":${stream},"messages":[${said}]}`;
    },
  };
}

const message = (role: string, content: string): string => JSON.stringify({ role, content });
