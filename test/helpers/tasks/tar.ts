import { pack } from 'tar-stream';

export interface HeaderArgument {
  readonly name: string;
  readonly content?: string;
  readonly type?: 'file' | 'symlink';
  readonly linkname?: string;
}

export async function packTar(entries: readonly HeaderArgument[]): Promise<Buffer> {
  const tar = pack();
  const parts: Uint8Array[] = [];
  const done = new Promise<void>((resolve, reject) => {
    tar.on('data', (chunk: unknown) => {
      if (chunk instanceof Uint8Array) parts.push(chunk);
    });
    tar.on('end', resolve);
    tar.on('error', reject);
  });
  for (const { content = '', ...header } of entries) tar.entry(header, content);
  tar.finalize();
  await done;
  return Buffer.concat(parts);
}
