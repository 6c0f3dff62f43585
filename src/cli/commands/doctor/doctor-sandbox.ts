/** Tells for `doctor` whether commands can be confined, which tools of the user they find, and what their caches take. */

import { existsSync } from 'node:fs'
import type { CliSetup } from '../../../channels/terminal/context.ts'
import { allowedTools } from '../../../config/config.ts'
import type { Setup } from '../../../host/api.ts'
import { policyOf } from '../../../host/setup/effective-policy.ts'
import { surveyNow } from '../../../host/toolset/executable-tools.ts'
import { sandboxNetwork } from '../../../host/toolset/network.ts'
import { ownTools } from '../../../host/toolset/policy-in-force.ts'
import { createConfinement, trySandboxNow } from '../../../host/toolset/sandbox/command-sandbox.ts'
import { atEnd } from '../../../kit/errors.ts'
import { count } from '../../../kit/text.ts'
import { createSandbox } from '../../../sandbox/create-sandbox.ts'
import { cacheUse, tidyCaches } from '../../../sandbox/filesystem/command-home.ts'
import { prepareGround } from '../../../sandbox/probe/probe-fixture.ts'
import { type ProbeResult, probeSandbox } from '../../../sandbox/run-probes.ts'
import { spawnPlain } from '../../../tools/process.ts'
import { CliExit, exitCodes } from '../../exit.ts'
import { type Finding, note, ok } from './doctor-home.ts'

const MIB = 2 ** 20

export async function sandboxFindings(setup: Setup): Promise<Finding[]> {
  return [await sandbox(setup), await background(setup), ...tools(setup), ...(await brokenTools(setup)), ...caches(setup)]
}

async function brokenTools(setup: Setup): Promise<Finding[]> {
  const { dir } = setup.config.tools
  const survey = existsSync(dir) && existsSync(setup.config.workspaceDir) ? await surveyNow(setup, { at: dir }) : undefined
  if (survey?.ok === false) return [note('tools', survey.why)]
  return (survey?.refused ?? []).map(({ path, why }) => note('tools', `${path} is not offered: ${why}`))
}

/** Runs a new trial in a temporary folder. A failure is only a note when the operator gives the model no shell. */
async function sandbox(setup: Setup): Promise<Finding> {
  const what = 'sandbox'
  const trial = await trySandboxNow(setup)
  if (trial.ok) return ok(what, 'bubblewrap works: a command was run in it')
  const toolsAllow = allowedTools(setup.config)
  const state = toolsAllow === undefined || toolsAllow.includes('shell') ? 'bad' : 'note'
  const says = `no command can run, so the model gets no shell: ${trial.why}`
  return { what, state, says, remedy: trial.remedy }
}

/** Opens a network as the first command in the background does. */
async function background(setup: Setup): Promise<Finding> {
  const [what, most] = ['background', setup.config.limits.maxBackground]
  if (most === 0) return note(what, 'no command runs in the background: limits.max_background is 0')
  const { context, config, paths } = setup
  const confinement = createConfinement('auto', { setup, policy: policyOf(config, paths, context.env) })
  using _end = atEnd(() => confinement.close())
  const { transaction, why } = await confinement.mode()
  if (!transaction) return note(what, `no command can run in the background: ${why}`)
  const loopback = await confinement.openLoopback()
  if (typeof loopback === 'string')
    return note(what, `commands can run in the background, but no other command reaches their ports: ${loopback}`)
  loopback.close()
  return ok(what, `${count(most, 'command')} of a conversation can run in the background`)
}

function tools(setup: Setup): Finding[] {
  const { mounts, secrets } = ownTools(setup)
  if (mounts.length === 0) return []
  const says = `commands can use ${count(mounts.length, 'folder')} of tools in your home folder, read-only; hidden in them: ${secrets.join(', ') || 'nothing'}`
  return [ok('tools', says, ...mounts)]
}

function caches({ paths }: Setup): Finding[] {
  tidyCaches(paths.home)
  const all = cacheUse(paths.home)
  if (all.length === 0) return []
  const bytes = all.reduce((sum, one) => sum + one.bytes, 0)
  const [largest] = all
  const says = `caches of commands: ${count(all.length, 'workspace')}, ${Math.ceil(bytes / MIB)} MiB; most for ${largest?.workspace}`
  return [note('caches', says, `to remove them: rm -r ${paths.home}/run/command-caches`)]
}

/** @throws CliExit 1 when an attempt succeeded, or when there is no sandbox to probe. */
export async function probe(setup: CliSetup, json: boolean): Promise<void> {
  const { process, env } = setup.context
  const { config, paths, log } = setup
  const ground = prepareGround()
  using _end = atEnd(() => ground.remove())
  const policy = policyOf(config, paths, env)
  const out = await sandboxNetwork('auto', { policy, hosts: policy.allowedDomains }, setup)
  const made = await createSandbox({ kind: 'auto', ...ground.settings, ...out, spawnPlain, log })
  if (!made.ok)
    throw new CliExit(exitCodes.error, [`error: no sandbox to probe: ${made.why ?? made.missing}`, ...(made.remedy ?? [])].join('\n  '))
  const { sandbox } = made
  const results = await probeSandbox(sandbox, { ground })
  sandbox.close?.()
  process.stdout.write(
    json ? `${JSON.stringify({ sandbox: sandbox.name, layers: sandbox.describe(), results })}\n` : told(sandbox.name, results),
  )
  const through = results.filter(({ stopped, skipped }) => !stopped && !skipped)
  if (through.length > 0) throw new CliExit(exitCodes.error, `error: ${through.length} of ${count(results.length, 'attempt')} got through`)
}

function told(name: string, results: readonly ProbeResult[]): string {
  const lines = results.map(
    ({ attempt, stopped, skipped, layer, detail }) =>
      `${skipped ? '·' : stopped ? '✓' : '✗'} ${attempt.padEnd(44)} ${stopped ? layer : detail}`,
  )
  return [`sandbox: ${name}`, ...lines, `${results.filter(({ stopped }) => stopped).length} of ${results.length} stopped`, ''].join('\n')
}
