/**
 * Implements `doctor`: it checks the installation and says how to fix each problem. It changes nothing, except that it ends sandbox
 * processes of a killed run and removes caches of commands that nobody uses.
 */

import { accessSync, constants, existsSync, statSync } from 'node:fs'
import type { CliSetup } from '../../../channels/terminal/context.ts'
import { isTerminal, openTerminal } from '../../../channels/terminal/tty.ts'
import { type Config, describeProblem, isWireProvider, providerNamed } from '../../../config/config.ts'
import { proposeProviders } from '../../../config/known-providers.ts'
import { workspaceProblems } from '../../../config/validate.ts'
import { FailureError } from '../../../host/failure.ts'
import { openRecords } from '../../../host/open/open-records.ts'
import { brokenChain, checkChain } from '../../../host/records/integrity/receipt-check.ts'
import { resolveExecutable } from '../../../host/setup/effective-policy.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { sayWeakKey, weakKeys } from '../../../host/setup/weak-keys.ts'
import { count } from '../../../kit/count.ts'
import type { Memory } from '../../../memory/memory.ts'
import { clearLeftovers } from '../../../sandbox/owner/private-folder.ts'
import { readStop } from '../../../service/stop-file.ts'
import type { Command, Flags } from '../../args/command.ts'
import { jsonFlag, workspaceFlag } from '../../args/flags.ts'
import { CliExit, exitCodes } from '../../exit.ts'
import { isInitsChoice } from '../../offline-notice.ts'
import { channelFindings } from './doctor-channels.ts'
import type { Finding } from './doctor-finding.ts'
import { sandboxFindings } from './doctor-sandbox.ts'

const flags = {
  probeSandbox: { type: 'boolean', about: 'Try to get out of the sandbox in forty ways (exit 1 if one succeeds)' },
  ...workspaceFlag,
  ...jsonFlag,
} as const satisfies Flags

export const doctor = {
  flags: flags,
  examples: [
    ['', 'read, then do what it says'],
    ['--probe-sandbox', 'prove that commands are confined'],
    ['--json', 'for scripts'],
  ],
  async run(context, { workspace, probeSandbox = false, json = false }) {
    const setup = loadSetup(context, { workspace })
    if (probeSandbox) return (await import('./probe-sandbox.ts')).probe(setup, json)
    const findings = setup.redactor.value([
      home(setup),
      configuration(setup),
      folder(setup),
      ...provider(setup),
      ...unusedKeys(setup),
      ...weakKeys(setup).map((weak): Finding => ({ what: 'key', state: 'note', says: sayWeakKey(weak) })),
      ...records(setup),
      stop(setup),
      ...(await sandboxFindings(setup)),
      ...channelFindings(setup),
      ...leftovers(setup),
      ...programs(),
      terminal(),
    ])
    if (json) context.process.stdout.write(`${JSON.stringify(findings)}\n`)
    else context.process.stdout.write(findings.map(told).join(''))
    if (findings.some(({ state }) => state === 'bad')) throw new CliExit(exitCodes.error)
  },
} as const satisfies Command<typeof flags>

function told({ what, state, says, remedy = [] }: Finding): string {
  const first = `${{ ok: '✓', note: '·', bad: '✗' }[state]} ${what.padEnd(11)} ${says}\n`
  return first + remedy.map((line) => `${' '.repeat(14)}${line}\n`).join('')
}

function home({ paths }: CliSetup): Finding {
  if (!existsSync(paths.home)) return { what: 'home', state: 'note', says: `${paths.home} does not exist yet; "braidclaw init" makes it` }
  const mode = statSync(paths.home).mode & 0o077
  if (mode !== 0) return { what: 'home', state: 'bad', says: `others may read ${paths.home}; run: chmod 700 ${paths.home}` }
  return { what: 'home', state: 'ok', says: paths.home }
}

function configuration({ file, paths }: CliSetup): Finding {
  return file
    ? { what: 'config', state: 'ok', says: `${file} is valid` }
    : { what: 'config', state: 'note', says: `no ${paths.config}: the defaults hold` }
}

function folder({ config, origins }: CliSetup): Finding {
  const [problem] = workspaceProblems(config, origins)
  if (problem) return { what: 'workspace', state: 'bad', says: describeProblem(problem) }
  try {
    accessSync(config.workspaceDir, constants.R_OK | constants.W_OK)
    return { what: 'workspace', state: 'ok', says: config.workspaceDir }
  } catch {
    return { what: 'workspace', state: 'bad', says: `${config.workspaceDir} cannot be written` }
  }
}

function provider({ config, context }: CliSetup): Finding[] {
  return Object.values(config.providers.models).map((model): Finding => {
    const what = model.name === config.defaultProvider ? 'provider *' : 'provider'
    if (!isWireProvider(model) || !model.apiKeyEnv || context.env[model.apiKeyEnv])
      return { what, state: 'ok', says: `${model.name} (${model.kind})` }
    const state = model.name === config.defaultProvider ? 'bad' : 'note'
    return { what, state, says: `${model.name} (${model.kind}): ${model.apiKeyEnv} is not set` }
  })
}

/** Reports a key that is set although another provider answers: its owner most likely thinks that it is used. */
function unusedKeys({ config, context, file }: CliSetup): Finding[] {
  const used = reachable(config, config.defaultProvider).flatMap((name) => {
    const model = providerNamed(config, name)
    return [name, ...(model && isWireProvider(model) ? [model.apiKeyEnv] : [])]
  })
  const unused = proposeProviders(context.env).filter(({ name, apiKeyEnv }) => !used.includes(apiKeyEnv ?? name))
  const byInit = file !== undefined && isInitsChoice(file)
  return unused.map(({ name, model, because }): Finding => {
    const advice = byInit ? `"braidclaw init" makes "${name}" answer` : `to ask "${name}": -m ${name}/${model}`
    return { what: 'key', state: 'note', says: `${because} is set and unused: "${config.defaultProvider}" answers; ${advice}` }
  })
}

/** Returns a provider and all providers that it passes requests to. The configuration has no cycles. */
function reachable(config: Config, name: string): readonly string[] {
  const found = providerNamed(config, name)
  const next = !found
    ? []
    : found.kind === 'reliable'
      ? found.providers
      : found.kind === 'router'
        ? [found.default, ...Object.values(found.routes)]
        : []
  return [name, ...next.flatMap((other) => reachable(config, other))]
}

function opened(setup: CliSetup): Memory | FailureError {
  try {
    return openRecords(setup)
  } catch (error) {
    if (error instanceof FailureError) return error
    throw error
  }
}

function records(setup: CliSetup): Finding[] {
  const { config } = setup
  if (!existsSync(config.memory.path)) return [{ what: 'memory', state: 'note', says: `${config.memory.path} does not exist yet` }]
  const memory = opened(setup)
  if (memory instanceof FailureError) return [{ what: 'memory', state: 'bad', says: memory.message }]
  const open = memory.journal.unfinished().length
  const chain = existsSync(config.receipts.path) || memory.checkpoint.get() ? checkChain({ setup, memory, deep: false }).found : undefined
  memory.close()
  return [
    {
      what: 'memory',
      state: open > 0 ? 'note' : 'ok',
      says: open > 0 ? `${config.memory.path}: ${count(open, 'open run')} (running now, or left by a crash)` : config.memory.path,
    },
    !chain
      ? { what: 'receipts', state: 'note', says: 'none yet' }
      : chain.ok
        ? { what: 'receipts', state: 'ok', says: `${chain.count} in a valid chain` }
        : { what: 'receipts', state: 'bad', says: chain.problems.slice(0, 1).map(brokenChain).join() },
  ]
}

function stop({ paths }: CliSetup): Finding {
  const reason = readStop(paths.estop)
  if (reason === undefined) return { what: 'estop', state: 'ok', says: 'not set' }
  return { what: 'estop', state: 'bad', says: `set: ${reason}; lift it with: braidclaw estop --clear` }
}

/** Reports nothing when no run was killed. */
function leftovers({ paths, log }: CliSetup): Finding[] {
  const ended = clearLeftovers(paths.home, log)
  if (ended === 0) return []
  return [{ what: 'sandbox', state: 'note', says: `a killed run had left sandbox processes (${ended}); they are ended now` }]
}

function programs(): Finding[] {
  const wanted = [
    ['bash', 'the shell tool needs it'],
    ['rg', 'search is faster with it (package ripgrep)'],
    ['git', 'useful in workspaces'],
  ] as const
  return wanted.map(([name, why]) => {
    const found = resolveExecutable(name)
    return found
      ? { what: 'program', state: 'ok', says: found }
      : { what: 'program', state: 'note', says: `${name} is not installed: ${why}` }
  })
}

function terminal(): Finding {
  if (openTerminal() === undefined)
    return { what: 'terminal', state: 'note', says: 'none: approvals cannot be asked here, medium risk ends with exit 4' }
  return {
    what: 'terminal',
    state: 'ok',
    says: isTerminal(1) ? 'approvals can be asked' : 'approvals can be asked (stdout is not a terminal)',
  }
}
