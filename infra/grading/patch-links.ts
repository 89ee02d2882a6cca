/**
 * A patch without the symlinks that lead out of the workspace: applied in an evaluation, one could point at the hidden
 * tests or the reward. Works on the text of `git diff`: each file's part begins with a line `diff --git`, which no content
 * line can imitate, because those begin with a space, `+`, `-` or `\`.
 */
export function withoutEscapingLinks(patch: Buffer): {
  readonly patch: Buffer;
  readonly files: number;
  readonly dropped: number;
} {
  // latin1 keeps every byte as it is.
  const parts = patch
    .toString('latin1')
    .split(/^(?=diff --git )/m)
    .filter((part) => part !== '');
  const kept = parts.filter((part) => !escapes(part));
  return {
    patch: kept.length === parts.length ? patch : Buffer.from(kept.join(''), 'latin1'),
    files: kept.length,
    dropped: parts.length - kept.length,
  };
}

const linkMode = /^(?:new file mode|new mode|index [0-9a-f]+\.\.[0-9a-f]+) 120000$/m;

function escapes(part: string): boolean {
  const [header = '', ...hunks] = part.split(/^(?=@@ )/m);
  if (!linkMode.test(header)) return false;
  // A link's content is its target, on the one added line; anything else is no link that we know how to judge.
  const added = /^\+(.*)$/m.exec(hunks.join(''));
  const target = added?.[1];
  if (target === undefined) return !/^deleted file mode 120000$/m.test(header);
  return target.startsWith('/') || target.split('/').includes('..');
}
