/** Keeps the files that runs deliver: each under its name and with its digest. */

import { sha256 } from '../../../kit/sha256.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import type { Command, Row } from '../../contract/store-port.ts'
import { numberOf, type PlaneContext } from '../context.ts'
import { amount, first, int, text } from '../row.ts'
import { type Access, lockRun, ownRun } from './run-row.ts'

const mostBytes = 1_048_576
const mostOfRun = 16
const namePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/

export type NewArtifact = { readonly name: string; readonly digest: string; readonly body: string }
export type KeptArtifact = { readonly name: string; readonly digest: string; readonly bytes: number }

/** What is kept never changes. @throws PlaneRefusal bad_request, too_large, too_many; conflict for another content under the same name */
export function* putArtifact(
  context: PlaneContext,
  { artifact, ...access }: Access & { readonly artifact: NewArtifact },
): Command<KeptArtifact> {
  const bytes = checkedBytes(artifact)
  const run = int(yield* lockRun(context, access), 'id')
  const { name, digest, body } = artifact
  const known = yield* first('SELECT digest FROM artifacts WHERE run_id = ? AND name = ?', [run, name])
  if (known && text(known, 'digest') !== digest)
    throw new PlaneRefusal(
      'conflict',
      `"${name}" was delivered with other content (sha256 ${text(known, 'digest')}); give this one another name`,
    )
  if (!known) {
    yield* assertRoom(run)
    yield ['INSERT INTO artifacts (run_id, name, digest, bytes, body) VALUES (?, ?, ?, ?, ?)', [run, name, digest, bytes, body]]
  }
  return { name, digest, bytes }
}

function checkedBytes({ name, digest, body }: NewArtifact): number {
  if (!namePattern.test(name))
    throw new PlaneRefusal(
      'bad_request',
      `an artifact's name is 1 to 128 letters, digits, ".", "_" or "-", and begins with a letter or digit`,
    )
  const bytes = Buffer.from(body, 'base64')
  if (bytes.toString('base64') !== body) throw new PlaneRefusal('bad_request', `the content of "${name}" is not base64`)
  if (bytes.length > mostBytes) throw new PlaneRefusal('too_large', `an artifact has at most 1 MiB; "${name}" has ${bytes.length} bytes`)
  const found = sha256(bytes)
  if (found !== digest)
    throw new PlaneRefusal('bad_request', `the content of "${name}" has the digest ${found}, not the one that was given; send it again`)
  return bytes.length
}

function* assertRoom(run: number): Command<void> {
  const count = yield* amount('SELECT COUNT(*) AS value FROM artifacts WHERE run_id = ?', [run])
  if (count >= mostOfRun) throw new PlaneRefusal('too_many', `a run has at most ${mostOfRun} artifacts`)
}

/** @throws PlaneRefusal not_found, forbidden */
export function* readArtifact({ name, ...access }: Access & { readonly name: string }): Command<{ digest: string; body: string }> {
  yield* ownRun(access)
  const row: Row | undefined = yield* first('SELECT digest, body FROM artifacts WHERE run_id = ? AND name = ?', [numberOf(access.id), name])
  if (!row) throw new PlaneRefusal('not_found', `${access.id} has no artifact "${name}"`)
  return { digest: text(row, 'digest'), body: text(row, 'body') }
}
