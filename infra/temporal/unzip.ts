import { createWriteStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createInflateRaw } from 'node:zlib';

// The layout of a zip archive, from its end: a record that points to the directory, whose entries point to the files.
const endSignature = Buffer.from('PK\x05\x06');
const entrySignature = 0x02014b50;
const deflated = 8;

/** Writes the one deflated file of a zip archive whose name ends like this to `target`. */
export async function unzipFile(archive: string, nameEnd: string, target: string): Promise<void> {
  const bytes = await readFile(archive);
  const packed = findPacked(bytes, nameEnd);
  if (packed === undefined) throw new Error(`${archive} is not a zip archive with a deflated file named ${nameEnd}`);
  await pipeline(Readable.from([packed]), createInflateRaw(), createWriteStream(target));
}

function findPacked(bytes: Buffer, nameEnd: string): Buffer | undefined {
  const end = bytes.lastIndexOf(endSignature);
  if (end < 0 || end + 20 > bytes.length) return undefined;
  let at = bytes.readUInt32LE(end + 16);
  while (at + 46 <= end && bytes.readUInt32LE(at) === entrySignature) {
    const nameBytes = bytes.readUInt16LE(at + 28);
    const name = bytes.toString('utf8', at + 46, at + 46 + nameBytes);
    if (name.endsWith(nameEnd) && bytes.readUInt16LE(at + 10) === deflated) {
      return packedAt(bytes, bytes.readUInt32LE(at + 42), bytes.readUInt32LE(at + 20));
    }
    at += 46 + nameBytes + bytes.readUInt16LE(at + 30) + bytes.readUInt16LE(at + 32);
  }
  return undefined;
}

/** The bytes of a file behind its local header, whose name and extra field have lengths of their own. */
function packedAt(bytes: Buffer, header: number, length: number): Buffer | undefined {
  if (header + 30 > bytes.length) return undefined;
  const start = header + 30 + bytes.readUInt16LE(header + 26) + bytes.readUInt16LE(header + 28);
  return bytes.subarray(start, start + length);
}
