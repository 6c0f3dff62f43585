/** Implements `control verify` and `control run save`: whether a run is what its agent signed, and the run as a folder for another host. */

import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import type { CliContext } from '../../../../channels/terminal/context.ts'
import { errorCode, explainErrno } from '../../../../config/text/read-toml-file.ts'
import type { Run } from '../../../../control/contract/run-shapes.ts'
import {
  type CarriedRun,
  type Verified,
  verifyManifest,
  verifyRunPath,
  writeRunFolder,
} from '../../../../control/manifest/verify-manifest.ts'
import { visible } from '../../../../kit/text.ts'
import { command } from '../../../args/command.ts'
import { CliExit, commandError, exitCodes } from '../../../exit.ts'
import { printOne } from '../../../print-list.ts'
import { idOf } from '../connect/argument-values.ts'
import { controlCommand, controlExits, controlFlags, proposeControlRuns } from '../connect/control-flags.ts'
import { type Control, withControl } from '../connect/with-control.ts'
import { oneLine } from '../text/table.ts'
import { logPieces, runArgs } from './control-run.ts'

const altered = [9, 'the manifest, the log or an artifact is not what was signed'] as const

export const verify = command({
  flags: {
    key: { type: 'text', about: 'The public key of the agent, 64 hex digits (default for a run: what its worker reported)' },
    ...controlFlags,
  },
  args: {
    what: {
      type: 'text',
      about: 'A manifest file, a folder that "control run save" wrote, or a run such as RUN-001',
      complete: proposeControlRuns,
    },
  },
  examples: [
    ['RUN-001', 'asks the control plane for the run, its log and artifacts'],
    ['run-7 --key 3f…', 'a folder, offline, against a key that you know'],
  ],
  details: () =>
    'A signature proves that the manifest is what the holder of the key signed. Whether that key is the agent\'s, only you can know: keep the key that "control agent list --json" shows at the beginning.',
  exits: [...controlExits, altered],
  async run(context, given, { what }) {
    const path = resolve(context.cwd, what)
    const isRun = /^(?:run-)?\d+$/i.test(what) && !existsSync(path)
    const verified = isRun ? await verifiedRun(context, given, idOf('run', what)) : verifiedPath(path, given.key)
    report(context, { verified, what, json: given.json ?? false })
  },
})

function verifiedPath(path: string, key: string | undefined): Verified {
  try {
    return verifyRunPath(path, key)
  } catch (error) {
    const code = errorCode(error)
    const why = code === 'ENOENT' ? 'the file or folder does not exist, and a run is named like RUN-001' : explainErrno(code)
    throw commandError(`${visible(path)}: ${why}`)
  }
}

function verifiedRun(context: CliContext, given: { readonly url?: string; readonly key?: string }, id: string): Promise<Verified> {
  return withControl(context, given, async (control) => {
    const run = await control.runs.get(id)
    if (run.manifest === null) return { ok: false, problems: [`${id} has no manifest: its worker delivered none`] }
    const pinnedKey = given.key ?? (await reportedKey(control, run))
    return verifyManifest(run.manifest, { ...(await carried(control, run)), pinnedKey })
  })
}

/** Returns the key that the worker reported; it proves nothing when worker and key were replaced together. */
async function reportedKey(control: Control, { agent_id: agent }: Run): Promise<string | undefined> {
  const found = (await control.fleet.list()).find(({ id }) => id === agent)?.worker?.signing_key
  return typeof found === 'string' ? found : undefined
}

async function carried(control: Control, run: Run): Promise<CarriedRun & { readonly log: Uint8Array }> {
  const artifacts = new Map<string, Uint8Array>()
  for (const { name } of run.artifacts) artifacts.set(name, (await control.runs.artifact(run.run_id, name)).bytes)
  return { run, manifest: run.manifest, artifacts, log: Buffer.concat(await Array.fromAsync(logPieces(control, run.run_id))) }
}

/** @throws CliExit 9 when it does not hold */
function report(
  context: CliContext,
  { verified, what, json }: { readonly verified: Verified; readonly what: string; readonly json: boolean },
): void {
  printOne(context, { json, value: verified, text: textOf(verified, what) })
  if (!verified.ok) throw new CliExit(exitCodes.integrity)
}

function textOf(verified: Verified, what: string): string {
  if (!verified.ok) return verified.problems.map((problem) => `invalid: ${oneLine(problem)}\n`).join('')
  const { manifest, checked, unchecked } = verified
  const { run_id: run, task, by, with: tools } = manifest
  return [
    `valid: ${visible(what)}`,
    `  ${run} of ${task.task_id} by ${by.agent_id} on ${by.host}, with ${tools.runner}${tools.model === null ? '' : ` (${tools.model})`}`,
    `  checked: ${checked.join(', ')}`,
    ...(unchecked.length > 0 ? [`  not checked: ${unchecked.join(', ')}`] : []),
  ]
    .map((line) => `${visible(line)}\n`)
    .join('')
}

export const save = controlCommand({
  flags: { to: { type: 'text', about: 'The folder (default: RUN-001-saved, here)' }, ...controlFlags },
  args: runArgs,
  examples: [['RUN-001 --to run-1', 'manifest, log and artifacts, which "control verify run-1" checks anywhere']],
  exits: [altered],
  async run({ context, control, json }, given, { run: typed }) {
    const id = idOf('run', typed)
    const folder = resolve(context.cwd, given.to ?? `${id}-saved`)
    if (existsSync(folder)) throw commandError(`${visible(folder)} exists; name another folder with --to`)
    const run = await control.runs.get(id)
    if (run.manifest === null) throw commandError(`${id} has no manifest: its worker delivered none`)
    report(context, { verified: writeRunFolder(folder, await carried(control, run)), what: folder, json })
  },
})
