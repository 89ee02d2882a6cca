/**
 * Runs inside a sandbox at the end of a stream: answers each message by a short one. Arguments: the bytes of a message and of an
 * answer.
 */
const [messageBytes = 0, answerBytes = 0] = process.argv.slice(2).map(Number);
const answer = Buffer.alloc(answerBytes, 'x');
let received = 0;
process.stdin.on('data', (chunk) => {
  received += chunk.length;
  if (received < messageBytes) return;
  received -= messageBytes;
  process.stdout.write(answer);
});
