/** Checks for `config validate` and `doctor` what the program accepts at each start, although the user cannot mean it. */

import { readdirSync, statSync } from 'node:fs'
import { parse } from 'node:path'
import { isLoopback } from '../http/listen.ts'
import { didYouMean, folded } from '../kit/text.ts'
import { whyNoWorkspace } from '../sandbox/protect/places.ts'
import { forbiddenPlace, isUnder } from '../security/targets/path.ts'
import { realPlace } from '../workspace/real-place.ts'
import { type ConfigProblem, isWireProvider, type Origins } from './config.ts'
import { type Loaded, type LoadInput, loadConfig } from './load.ts'
import { builtIn } from './paths.ts'
import { errorCode, explainErrno } from './text/read-toml-file.ts'
import { quote } from './text/toml.ts'

type Checked = Pick<Extract<Loaded, { ok: true }>, 'config' | 'origins' | 'file' | 'project'>
type ValidateInput = Pick<LoadInput, 'home' | 'env'> & {
  /** The tools that are known by name without asking them. */
  readonly tools: readonly string[]
}
/** A warning may be what the user means. */
export type Doubt = ConfigProblem & { readonly isWarning: boolean }

/** Works like `loadConfig`, but also requires that the workspace exists, and that the values make sense together. */
export function validateConfig(input: LoadInput & ValidateInput): Loaded & { readonly warnings: readonly Doubt[] } {
  const loaded = loadConfig(input)
  if (!loaded.ok) return { ...loaded, warnings: [] }
  const { problems = [], warnings = [] } = Object.groupBy(doubtsOf(loaded, input), ({ isWarning }) => (isWarning ? 'warnings' : 'problems'))
  return { ...(problems.length > 0 ? { ok: false as const, problems } : loaded), warnings }
}

export function doubtsOf(checked: Checked, around: ValidateInput): readonly Doubt[] {
  const { config, origins } = checked
  const missing = folderProblem(config.workspaceDir, origins.workspace_dir?.where === builtIn.where)
  const message = `${quote(config.workspaceDir)} ${missing}`
  return [
    ...(missing === undefined ? workspaceDoubts(checked, around) : [{ ...placeOf(origins, 'workspace_dir'), message, isWarning: false }]),
    ...recordsNowhere(checked),
    ...modes(checked, around),
    ...unknownTools(checked, around),
    ...openKeys(checked),
  ]
}

function workspaceDoubts({ config, origins }: Checked, { home, env }: ValidateInput): Doubt[] {
  const [workspace, userHome] = [realPlace(config.workspaceDir), realPlace(env.HOME || '/')]
  const why = whyNoWorkspace({ workspace, home: userHome, stateHome: realPlace(home) })
  // File tools can work in a home folder, and "-C ." says that somebody wants that.
  const named = quote(config.workspaceDir)
  if (why !== undefined) return [{ ...placeOf(origins, 'workspace_dir'), message: `${named}: ${why}`, isWarning: workspace === userHome }]
  const entry = config.security.forbiddenPaths.find((each) => {
    const place = forbiddenPlace(each, { workspace, home: env.HOME || '/' })
    return [place, realPlace(place)].some((path) => isUnder(folded(workspace), folded(path)))
  })
  if (entry === undefined) return []
  const message = `${quote(entry)} covers the workspace ${named}, so no tool and no command may use any file; take it out, or choose another workspace_dir`
  return [{ ...placeOf(origins, 'security.forbidden_paths'), message, isWarning: false }]
}

/** `/dev/shm` holds files like any other folder. */
function recordsNowhere({ config: { memory, receipts }, origins }: Checked): Doubt[] {
  return Object.entries({ 'memory.path': memory.path, 'receipts.path': receipts.path }).flatMap(([key, path]) => {
    const real = realPlace(path)
    const root = ['/proc', '/sys', '/dev'].find((each) => isUnder(real, each) && !isUnder(real, '/dev/shm'))
    const why = `is in ${root}, where the kernel shows itself and keeps no file; name a file in your home folder, or remove the line`
    return root === undefined ? [] : [{ ...placeOf(origins, key), message: `${quote(path)} ${why}`, isWarning: false }]
  })
}

/** Reports files that others may change: they decide what the agent may do. A group that is the user's own has the user's number. */
function modes({ file, project }: Checked, { home }: ValidateInput): Doubt[] {
  const files = [file, project, `${home}/config.env`, `${home}/agents.json`].filter((path) => path !== undefined)
  return files.flatMap((path) => {
    const { mode = 0, uid = 0, gid = 0 } = statSync(path, { throwIfNoEntry: false }) ?? {}
    const who = (mode & 0o002) !== 0 ? 'every user of this machine' : (mode & 0o020) !== 0 && uid !== gid ? `the group ${gid}` : undefined
    const message = `its mode is ${(mode & 0o777).toString(8).padStart(4, '0')}, so ${who} may change what the agent may do; run: chmod go-w ${quote(path)}`
    return who === undefined ? [] : [{ file: path, key: '', message, isWarning: (mode & 0o002) === 0 }]
  })
}

/** The tools of a claw or another program are known only while it runs. */
function unknownTools({ config, origins }: Checked, { tools }: ValidateInput): Doubt[] {
  const { dir, executables } = config.tools
  const own = statSync(dir, { throwIfNoEntry: false })?.isDirectory() ? readdirSync(dir) : [dir]
  const known = [...new Set([...tools, ...executables, ...own.map((path) => parse(path).name)])]
  return Object.entries(config.channels).flatMap(([channel, { toolsAllow }]) =>
    (Array.isArray(toolsAllow) ? toolsAllow.map(String) : [])
      .filter((name) => !known.includes(name))
      .map((name) => ({
        ...placeOf(origins, `channels.${channel}.tools_allow`),
        message: `${quote(name)} is not a tool that is known here, so it allows nothing${didYouMean(name, known) || `; there are: ${known.join(', ')}`}`,
        isWarning: true,
      })),
  )
}

function openKeys({ config, origins }: Checked): Doubt[] {
  return Object.entries(config.providers.models).flatMap(([name, provider]) => {
    const url = isWireProvider(provider) && provider.apiKeyEnv !== undefined ? URL.parse(provider.baseUrl ?? '') : null
    if (url?.protocol !== 'http:' || isLoopback(url.hostname)) return []
    const message = `${quote(url.href)} sends the key over the network where others can read it; write https://, or use a tunnel to 127.0.0.1`
    return [{ ...placeOf(origins, `providers.models.${name}.base_url`), message, isWarning: true }]
  })
}

function placeOf(origins: Origins, key: string): Omit<ConfigProblem, 'message'> {
  const { where: file = 'built in', line, column } = origins[key] ?? {}
  return { file, line, column, key }
}

/** `ours`: the default workspace, which is created on first use. */
function folderProblem(path: string, ours: boolean): string | undefined {
  try {
    return statSync(path).isDirectory() ? undefined : 'is a file, not a folder; choose another path'
  } catch (error) {
    const code = errorCode(error)
    if (ours && code === 'ENOENT') return undefined
    return code === 'ENOENT' ? 'does not exist; create it or run "braidclaw init"' : `cannot be used: ${explainErrno(code)}`
  }
}
