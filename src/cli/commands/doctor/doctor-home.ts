/** Checks for `doctor` the home: its folder and disk, the configuration, the workspace, the records, the stop, and backups. */

import { accessSync, constants, existsSync, statfsSync, statSync } from 'node:fs'
import type { CliSetup } from '../../../channels/terminal/context.ts'
import { isTerminal, openTerminal } from '../../../channels/terminal/tty.ts'
import { describeProblem } from '../../../config/config.ts'
import { programIn, valueAt } from '../../../config/output/show.ts'
import { doubtsOf } from '../../../config/validate.ts'
import { configuredChecks } from '../../../host/checks/find-checks.ts'
import { brokenChain, checkChain } from '../../../host/records/integrity/receipt-check.ts'
import { resolveExecutable } from '../../../host/setup/effective-policy.ts'
import { loadHooks } from '../../../host/toolset/guests/hooks/load-hooks.ts'
import { expanded } from '../../../host/toolset/guests/mcp/configured-servers.ts'
import { openMcp } from '../../../host/toolset/guests/mcp/open-mcp.ts'
import { whyNotOffered } from '../../../host/toolset/guests/plugins/plugin-tools.ts'
import { openPlugins } from '../../../host/toolset/guests/plugins/plugins.ts'
import { builtInNames } from '../../../host/toolset/tool-selection.ts'
import { readStructure, structureFile } from '../../../host/transactions/change-rules.ts'
import { errorText } from '../../../kit/errors.ts'
import { count, grouped, visible } from '../../../kit/text.ts'
import { createResults } from '../../../memory/conversations/results.ts'
import type { Memory } from '../../../memory/memory.ts'
import { findChromium } from '../../../sandbox/bubblewrap/chromium.ts'
import { clearLeftovers } from '../../../sandbox/private-folder.ts'
import { readStop } from '../../../service/stop-file.ts'

export function homeFindings(setup: CliSetup): Finding[] {
  const { home } = setup.paths
  const doubts = doubtsOf(setup, { home, env: setup.context.env, tools: builtInNames }).map(
    (doubt): Finding => ({
      what: doubt.key === 'workspace_dir' ? 'workspace' : 'config',
      state: doubt.isWarning ? 'note' : 'bad',
      says: describeProblem(doubt),
    }),
  )
  const fine = [configuration(setup), limits(setup), workspace(setup)].filter(({ what }) => !doubts.some((doubt) => doubt.what === what))
  return [homeFolder(setup), ...(existsSync(home) ? diskFindings(home, freeBytes(home)) : []), ...fine, ...structure(setup), ...doubts]
}

function structure({ config: { workspaceDir } }: CliSetup): Finding[] {
  const { problems: [problem] = [], rules = [] } = readStructure(workspaceDir) ?? {}
  if (problem !== undefined) return [bad('structure', `${structureFile(workspaceDir)}:${problem}; see: braidclaw structure check`)]
  return rules.length === 0 ? [] : [ok('structure', `${count(rules.length, 'rule')} in ${structureFile(workspaceDir)}`)]
}

function homeFolder({ paths }: CliSetup): Finding {
  if (!existsSync(paths.home)) return note('home', `${paths.home} does not exist yet; "braidclaw init" makes it`)
  const mode = statSync(paths.home).mode & 0o077
  if (mode !== 0) return bad('home', `others may read ${paths.home}; run: chmod 700 ${paths.home}`)
  return ok('home', paths.home)
}

const MIB = 2 ** 20
/** Below the first no turn can be recorded soon; below the second it is time to look. */
const [tooLittle, little] = [100 * MIB, 1_000 * MIB]

export function diskFindings(home: string, free: number): Finding[] {
  const says = `${Math.floor(free / MIB).toLocaleString('en')} MiB are free for ${home}`
  if (free >= little) return [ok('disk', says)]
  const remedy = ['forget old conversations: braidclaw home prune --days 90', `see what takes the space: du -sh ${home}/*`]
  if (free >= tooLittle) return [note('disk', says, ...remedy)]
  return [bad('disk', `${says}; on a full disk no turn begins`, ...remedy)]
}

/** Returns the bytes that an ordinary user may still use. */
function freeBytes(folder: string): number {
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize
}

function configuration({ file, origins, paths }: CliSetup): Finding {
  const program = programIn(origins)
  if (program) return ok('config', `${[file, program].filter(Boolean).join(' and ')}: valid`)
  return file ? ok('config', `${file} is valid`) : note('config', `no ${paths.config}: the defaults hold`)
}

/** Says how long a turn and a command may be, each number with its origin. */
function limits({ config, origins }: CliSetup): Finding {
  const each = ['max_tool_rounds', 'max_same_results', 'shell_timeout_s'].map((key) => {
    const { source, where, line } = origins[`limits.${key}`] ?? { source: 'default', where: '' }
    const origin = source === 'default' ? source : `${where}${line === undefined ? '' : `:${line}`}`
    return `${key} ${valueAt(config, `limits.${key}`)} (${origin})`
  })
  return ok('limits', each.join(', '))
}

function workspace({ config }: CliSetup): Finding {
  try {
    accessSync(config.workspaceDir, constants.R_OK | constants.W_OK)
    return ok('workspace', config.workspaceDir)
  } catch {
    return bad('workspace', `${config.workspaceDir} cannot be written`, `ls -ld ${config.workspaceDir}`)
  }
}

/** Tells of the hooks of this workspace; without hooks it says nothing. */
export function hookFindings(setup: CliSetup): Finding[] {
  const { hooks, notices, problems } = loadHooks(setup)
  const found = (state: Finding['state'], lines: readonly string[]) => lines.map((says): Finding => ({ what: 'hooks', state, says }))
  const names = [...new Set(hooks.map(({ name }) => name))].join(', ')
  return [...found('bad', problems), ...found('note', notices), ...found('ok', names ? [names] : [])]
}

export function recordFindings(setup: CliSetup, memory: Memory): Finding[] {
  const { config } = setup
  const backUp = 'braidclaw home backup ~/backups/NAME.tar.gz'
  const remedy = ['all that is wrong: braidclaw receipt verify --deep', 'a copy from before: braidclaw home restore BACKUP --to FOLDER']
  const open = memory.journal.unfinished().length
  const chain = existsSync(config.receipts.path) || memory.checkpoint.get() ? checkChain({ setup, memory, deep: false }).found : undefined
  return [
    open === 0
      ? ok('memory', config.memory.path)
      : note('memory', `${config.memory.path}: ${count(open, 'open run')} (running now, or left by a crash)`),
    !chain
      ? note('receipts', 'none yet')
      : chain.ok
        ? ok('receipts', `${chain.count} in a valid chain`)
        : bad('receipts', chain.problems.slice(0, 1).map(brokenChain).join(), ...remedy),
    ...resultFindings(setup, memory),
    note('backup', 'none is made by itself (docs/backup.md)', `make one now, also while a server runs: ${backUp}`),
  ]
}

function resultFindings({ config }: CliSetup, memory: Memory): Finding[] {
  const { count: stored, bytes } = createResults(memory.store).use()
  if (stored === 0) return []
  const most = config.memory.resultsMaxBytes
  const says = `${count(stored, 'long result')} kept whole for result_read, ${grouped(bytes)} bytes of ${grouped(most)} (memory.results_max_bytes)`
  return [ok('results', says)]
}

export function stopFinding({ paths }: CliSetup): Finding {
  const reason = readStop(paths.estop)
  if (reason === undefined) return ok('estop', 'not set')
  return bad('estop', `set: ${reason}; lift it with: braidclaw estop --clear`)
}

/** Reports nothing when there is no plugin. */
export function pluginFindings({ paths }: CliSetup): Finding[] {
  try {
    return openPlugins(paths.home)
      .list()
      .map((plugin) => {
        const { name, state } = plugin
        const says = `${visible(name)}: ${whyNotOffered(plugin) ?? state}`
        if (state === 'not approved') return note('plugin', says, `look at it, and let it run: braidclaw plugin approve ${visible(name)}`)
        return state === 'approved' || state === 'disabled' ? ok('plugin', says) : bad('plugin', says)
      })
  } catch (error) {
    return [bad('plugin', errorText(error))]
  }
}

/** Reports nothing when no server is configured. It starts none. */
export function serverFindings(setup: CliSetup): Finding[] {
  try {
    const mcp = openMcp({ setup })
    const { servers, problems, notices } = mcp.servers()
    const found = servers.map(({ id }): Finding => {
      const { server, state, tools } = mcp.status(id)
      const start = expanded(server, setup)
      if (state === 'approved' && 'why' in start) return { what: 'mcp', state: 'bad', says: start.why }
      const approved = tools.filter((tool) => tool.state === 'approved').length
      const others = tools.filter((tool) => tool.state === 'changed' || tool.state === 'not approved' || tool.state === 'gone')
      const words = [
        state,
        `${approved} of ${count(tools.length, 'tool')} offered`,
        ...others.map((tool) => `${visible(tool.name)} ${tool.state}`),
      ]
      const isRight = (state === 'approved' && others.length === 0) || state === 'disabled'
      const says = `${id}: ${words.join(', ')}`
      if (isRight) return ok('mcp', says)
      return (state === 'not approved' ? note : bad)('mcp', says, `look at it: braidclaw mcp show ${id}; then: braidclaw mcp approve ${id}`)
    })
    return [...problems.map((says) => bad('mcp', says)), ...notices.map((says) => note('mcp', says)), ...found]
  } catch (error) {
    return [bad('mcp', errorText(error))]
  }
}

/** Reports the checks of the project, and whether stories and the tool browser have a Chromium here. */
export function checkFindings(setup: CliSetup): Finding[] {
  const chromium = findChromium(setup.context.env)
  const browser = setup.config.tools.browser ? (chromium ? 'offered' : 'not offered') : 'off (docs/browser.md)'
  const stories = `stories: ${chromium ?? 'no Chromium is installed'}; tool browser: ${browser}`
  try {
    const names = configuredChecks(setup).map(({ name }) => name)
    return [ok('checks', `${names.join(', ') || 'none here; "braidclaw check init" finds some'}; ${stories}`)]
  } catch (error) {
    return [note('checks', `${errorText(error)}; ${stories}`)]
  }
}

/** Reports nothing when no run was killed. */
export function leftovers({ paths, log }: CliSetup): Finding[] {
  const ended = clearLeftovers(paths.home, log)
  if (ended === 0) return []
  return [note('sandbox', `a killed run had left sandbox processes (${ended}); they are ended now`)]
}

/** Checks for `doctor` what the machine offers: programs, and a terminal. */
export function machineFindings(): Finding[] {
  return [...programs(), terminal()]
}

function programs(): Finding[] {
  const wanted = [
    ['bash', 'the shell tool needs it'],
    ['rg', 'search is faster with it (package ripgrep)'],
    ['git', 'useful in workspaces'],
  ] as const
  return wanted.map(([name, why]) => {
    const found = resolveExecutable(name)
    return found ? ok('program', found) : note('program', `${name} is not installed: ${why}`)
  })
}

function terminal(): Finding {
  if (openTerminal() === undefined) return note('terminal', 'none: approvals cannot be asked here, medium risk ends with exit 4')
  return ok('terminal', isTerminal(1) ? 'approvals can be asked' : 'approvals can be asked (stdout is not a terminal)')
}

/** The report of one check of `doctor`. `remedy` has the lines to print below: commands that the user can copy. */
export type Finding = {
  readonly what: string
  readonly state: 'ok' | 'note' | 'bad'
  readonly says: string
  readonly remedy?: readonly string[]
}

const report =
  (state: Finding['state']) =>
  (what: string, says: string, ...remedy: readonly string[]): Finding =>
    remedy.length === 0 ? { what, state, says } : { what, state, says, remedy }

/** Report that all is well with it; what is good to know; what is wrong. */
export const [ok, note, bad] = [report('ok'), report('note'), report('bad')]
