/**
 * Implements `doctor --probe-sandbox`: it tries about forty escapes from the sandbox on canary files and names the layer that stopped each.
 */

import type { CliSetup } from '../../../channels/terminal/context.ts'
import { policyOf } from '../../../host/setup/effective-policy.ts'
import { sandboxNetwork } from '../../../host/toolset/network/sandbox-network.ts'
import { count } from '../../../kit/count.ts'
import { createSandbox } from '../../../sandbox/create-sandbox.ts'
import { prepareGround } from '../../../sandbox/probe/ground.ts'
import { type ProbeResult, probeSandbox } from '../../../sandbox/run-probes.ts'
import { spawnPlain } from '../../../tools/process.ts'
import { CliExit, exitCodes } from '../../exit.ts'

/** @throws CliExit 1 when an attempt succeeded, or when there is no sandbox to probe. */
export async function probe(setup: CliSetup, json: boolean): Promise<void> {
  const { process, env } = setup.context
  const { config, paths, log } = setup
  const ground = prepareGround()
  try {
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
    if (through.length > 0)
      throw new CliExit(exitCodes.error, `error: ${through.length} of ${count(results.length, 'attempt')} got through`)
  } finally {
    ground.remove()
  }
}

function told(name: string, results: readonly ProbeResult[]): string {
  const lines = results.map(
    ({ attempt, stopped, skipped, layer, detail }) =>
      `${skipped ? '·' : stopped ? '✓' : '✗'} ${attempt.padEnd(44)} ${stopped ? layer : detail}`,
  )
  return [`sandbox: ${name}`, ...lines, `${results.filter(({ stopped }) => stopped).length} of ${results.length} stopped`, ''].join('\n')
}
