/** Implements `control run artifacts`: lists what a run delivered, and saves it with every digest checked. */

import { mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { errorCode, explainErrno } from '../../../../config/text/read-toml-file.ts'
import type { Run } from '../../../../control/contract/run-shapes.ts'
import { grouped } from '../../../../kit/count.ts'
import type { Command, Flags } from '../../../args/command.ts'
import { CliExit, commandError, exitCodes } from '../../../exit.ts'
import { printList } from '../../../print-list.ts'
import { controlExits, controlFlags } from '../connect/control-flags.ts'
import { idOf } from '../connect/ids.ts'
import { type Control, withControl } from '../connect/with-control.ts'
import { oneLine, table } from '../text/table.ts'
import { runArgs } from './control-run.ts'

const flags = {
  to: { type: 'text', about: 'Save them in this folder; files that are there stay as they are' },
  ...controlFlags,
} as const satisfies Flags

export const artifacts = {
  flags,
  args: runArgs,
  examples: [
    ['RUN-001', 'names, sizes and SHA-256'],
    ['RUN-001 --to results', 'saves them; each digest is checked first'],
  ],
  exits: [...controlExits, [9, 'an artifact has another digest than the run delivered']],
  async run(context, given, { run: typed }) {
    const id = idOf('run', typed)
    await withControl(context, given, async (control) => {
      const run = await control.runs.get(id)
      if (given.to !== undefined) for (const each of run.artifacts) await save(control, id, each, resolve(context.cwd, given.to))
      const lines = table(
        run.artifacts.map(({ name, bytes, digest }) => [name, grouped(bytes), digest]),
        { right: [1], keep: [0, 2] },
      )
      printList(context, { items: run.artifacts, json: given.json ?? false, lines, none: `${id} delivered no artifacts` })
    })
  },
} as const satisfies Command<typeof flags, typeof runArgs>

/** @throws CliExit 9 for other bytes than were delivered */
async function save(control: Control, id: string, { name, digest }: Run['artifacts'][number], folder: string): Promise<void> {
  if (!/^[^/\0]{1,255}$/.test(name) || name === '.' || name === '..')
    throw commandError(`${id}: an artifact is called ${JSON.stringify(name)}, which is no name of a file here`)
  const { bytes } = await control.runs.artifact(id, name)
  const found = new Bun.CryptoHasher('sha256').update(bytes).digest('hex')
  if (found !== digest.replace(/^sha256[:-]/, ''))
    throw new CliExit(
      exitCodes.integrity,
      `error: ${oneLine(name)} of ${id} has the digest ${found}, not ${digest}; nothing of it was saved`,
    )
  write(folder, name, bytes)
}

function write(folder: string, name: string, bytes: Uint8Array): void {
  const path = join(folder, name)
  try {
    mkdirSync(folder, { recursive: true })
    writeFileSync(path, bytes, { flag: 'wx' })
  } catch (error) {
    throw commandError(`${oneLine(path)} cannot be written: ${explainErrno(errorCode(error))}`)
  }
}
