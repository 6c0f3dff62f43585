/** Writes a change set as a patch in the format of git, which `git apply` and `patch` read; binary files as git writes them. */

import { deflateSync } from 'node:zlib'
import { visible } from '../../kit/text.ts'
import type { Change, ChangeSet, EntryState } from '../../runtime/changes.ts'
import { commitDiffs, type FileDiff, fileDiffs, withoutGit } from './file-diff.ts'
import { hunkHeader, type TextDiff } from './hunks.ts'

/** A patch is complete or says what it lacks, so it compares far longer files than a question shows. */
const limits = { fileBytes: 64 * 1024 * 1024, allBytes: 256 * 1024 * 1024 }

/**
 * A line that begins with "#" says what a patch cannot hold: commits and other data of git, what lies outside the workspace, folders, permissions other than the
 * executable bit, and content that is not kept any more.
 */
export function patchText(set: ChangeSet): string {
  const { parts, others } = withoutGit(set)
  const diffs = fileDiffs(others, limits)
  const commits = parts.map(({ title, set: files }) => {
    const { all, isShown } = commitDiffs(files, diffs, limits)
    const patches = files ? all.filter((diff) => !isShown(diff)).map((diff) => patchOf(diff, files)) : []
    return `# ${visible(title)}\n${commented(patches.join(''))}`
  })
  const patches = diffs.map((diff) => (diff.path.startsWith('/') ? commented(patchOf(diff, set)) : patchOf(diff, set)))
  return [...commits, ...patches].join('')
}

function commented(text: string): string {
  return text.replace(/^(?=.)/gm, '# ')
}

function patchOf(diff: FileDiff, set: ChangeSet): string {
  const { before, after, difference, path } = diff
  const state = after ?? before
  if (state?.kind === 'folder' || state?.kind === 'other' || difference.type === 'unseen') {
    const what = before && after ? 'changed' : after ? 'new' : 'deleted'
    const kind = state?.kind === 'folder' ? ' folder' : ''
    return `# ${what}${kind} ${quoted(path)}: ${difference.type === 'unseen' ? 'its content is not kept, so it is not' : 'not'} part of this patch\n`
  }
  const [name, oldName] = [nameOf(diff.changes.at(-1), path), nameOf(diff.changes[0], diff.from ?? path)]
  const head = [`diff --git ${oldName('a/')} ${name('b/')}`, ...modeLines(diff), ...renameLines(diff, oldName, name)]
  const body =
    difference.type === 'text'
      ? [
          `--- ${before ? spaced(oldName('a/')) : '/dev/null'}`,
          `+++ ${after ? spaced(name('b/')) : '/dev/null'}`,
          ...textLines(difference.diff),
        ]
      : difference.type === 'binary'
        ? binaryLines(diff, set)
        : []
  return head.length + body.length === 1 ? '' : `${[...head, ...body].join('\n')}\n`
}

/** Git knows two permissions of a file: executable or not. */
function modeLines({ before, after }: FileDiff): string[] {
  if (!before) return [`new file mode ${gitMode(after)}`]
  if (!after) return [`deleted file mode ${gitMode(before)}`]
  const [old, now] = [gitMode(before), gitMode(after)]
  return old === now ? [] : [`old mode ${old}`, `new mode ${now}`]
}

function gitMode(state: EntryState | undefined): string {
  if (state?.kind === 'link') return '120000'
  return (state?.mode ?? 0) & 0o100 ? '100755' : '100644'
}

type Name = (prefix: string) => string

function renameLines({ from, similarity }: FileDiff, oldName: Name, name: Name): string[] {
  return from === undefined ? [] : [`similarity index ${similarity}%`, `rename from ${oldName('')}`, `rename to ${name('')}`]
}

function textLines({ hunks }: TextDiff): string[] {
  return hunks.flatMap((hunk) => [
    hunkHeader(hunk),
    ...hunk.lines.flatMap(({ mark, text, unended }) => [`${mark}${text}`, ...(unended ? ['\\ No newline at end of file'] : [])]),
  ])
}

function binaryLines({ changes }: FileDiff, set: ChangeSet): string[] {
  const [from, to] = [changes[0], changes.at(-1)]
  const read = (change: Change | undefined, side: 'before' | 'after') =>
    (change?.[side] && set.content(change, side, limits.fileBytes)) || new Uint8Array()
  const [old, now] = [read(from, 'before'), read(to, 'after')]
  return [`index ${blobId(old, from?.before)}..${blobId(now, to?.after)}`, 'GIT binary patch', ...literal(now), '', ...literal(old), '']
}

/** Git applies a binary patch only to exactly this content. */
function blobId(content: Uint8Array, state: EntryState | undefined): string {
  if (!state) return '0'.repeat(40)
  return new Bun.CryptoHasher('sha1').update(`blob ${content.length}\0`).update(content).digest('hex')
}

/** Lines of 52 bytes, each with its length as one letter. */
function literal(content: Uint8Array): string[] {
  const packed = deflateSync(content)
  const lines: string[] = [`literal ${content.length}`]
  for (let at = 0; at < packed.length; at += 52) {
    const piece = packed.subarray(at, at + 52)
    lines.push(String.fromCharCode(piece.length + (piece.length <= 26 ? 64 : 70)) + base85(piece))
  }
  return lines
}

const letters = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~'

function base85(bytes: Uint8Array): string {
  const padded = Buffer.alloc(Math.ceil(bytes.length / 4) * 4)
  padded.set(bytes)
  const groups: string[] = []
  for (let at = 0; at < padded.length; at += 4) {
    let number = padded.readUInt32BE(at)
    const group = ['', '', '', '', '']
    for (let place = 4; place >= 0; place--) {
      group[place] = letters[number % 85] ?? ''
      number = Math.floor(number / 85)
    }
    groups.push(group.join(''))
  }
  return groups.join('')
}

/** A name with spaces ends with a tab, so that what follows cannot be taken for a part of it. */
function spaced(name: string): string {
  return name.includes(' ') ? `${name}\t` : name
}

/** Quotes as git does. A name that is not UTF-8 is written by its real bytes. */
function nameOf(change: Change | undefined, path: string): Name {
  const bytes = change?.bytes === undefined ? undefined : Buffer.from(change.bytes, 'base64')
  return (prefix) => (bytes ? `"${prefix}${octal(bytes)}"` : quoted(prefix + path))
}

function quoted(name: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  return /["\\\u0000-\u001f\u007f]/.test(name) ? `"${octal(Buffer.from(name))}"` : name
}

function octal(bytes: Buffer): string {
  return [...bytes]
    .map((byte) =>
      byte < 0x20 || byte > 0x7e || byte === 0x22 || byte === 0x5c ? `\\${byte.toString(8).padStart(3, '0')}` : String.fromCharCode(byte),
    )
    .join('')
}
