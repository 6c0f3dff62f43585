/** Evaluates a configuration program in a sandbox of its own, checks what it returns, and turns it into settings. */

import { extname, join } from 'node:path'
import { z } from 'zod'
import { isObject, parseJson } from '../../kit/json.ts'
import { didYouMean, quote } from '../../kit/text.ts'
import { namespaceArguments } from '../../sandbox/bubblewrap/namespaces.ts'
import { doesNotWork, notInstalled, notLinux } from '../../sandbox/install.ts'
import { fixedPath } from '../../sandbox/trial-key.ts'
import { isCompiled } from '../../service/own-program.ts'
import type { ConfigProblem } from '../config.ts'

/** The settings by key, and what the file says that has no effect, or what is wrong with it. */
export type ProgramResult = {
  readonly settings: { readonly [key: string]: unknown }
  readonly notices: readonly string[]
  readonly problems: readonly Pick<ConfigProblem, 'key' | 'message'>[]
}

const [timeMs, memoryKib] = [5_000, 1024 * 1024]

/** @param asked `{ source, env }` as JSON */
export function evaluateProgram(asked: string): ProgramResult {
  const { value, failure } = confined(Buffer.from(asked))
  const { data, error } = programShape.safeParse(value)
  if (data && failure === undefined) return { ...settingsOf(data), problems: [] }
  const problems = failure === undefined ? error?.issues.map((issue) => problemOf(issue, value)) : [{ key: '', message: String(failure) }]
  return { settings: {}, notices: [], problems: problems ?? [] }
}

/** The program sees the system's programs and itself: no home, no workspace, no network, and of the environment only NODE_ENV. */
function confined(asked: Buffer): { readonly value?: unknown; readonly failure?: unknown } {
  const needed = (why: string) => ({ failure: `it is evaluated only in a sandbox; ${why}` })
  if (process.platform !== 'linux') return needed(notLinux)
  const bwrap = Bun.which('bwrap', { PATH: fixedPath })
  if (bwrap === null) return needed(notInstalled.missing)
  const module = join(import.meta.dir, `run-program${extname(import.meta.path)}`)
  const script = "process.stdout.write(await (await import('/run/program.ts')).runProgram())"
  const own = isCompiled() ? [] : ['--ro-bind', module, '/run/program.ts']
  const argv = isCompiled() ? ['__config'] : ['--config=/dev/null', '--no-env-file', '--no-install', '-e', script]
  const systems = ['/usr', '/bin', '/lib', '/lib64', '/nix/store', '/gnu/store'].flatMap((path) => ['--ro-bind-try', path, path])
  const mounts = [...'--proc /proc --dev /dev --size 1048576 --tmpfs /tmp --ro-bind'.split(' '), process.execPath, '/run/braidclaw']
  const start = [...'--remount-ro / --chdir /tmp -- /run/braidclaw'.split(' '), ...argv]
  const inside = [bwrap, ...namespaceArguments(new Set()), ...systems, ...mounts, ...own, ...start]
  const limits = ['/bin/sh', '-c', `ulimit -c 0; ulimit -d ${memoryKib}; ulimit -t ${timeMs / 500}; exec "$@"`, 'sh']
  const bounds = { timeout: timeMs, killSignal: 'SIGKILL', maxBuffer: 4_000_000 } as const
  const child = Bun.spawnSync([...limits, ...inside], { stdin: asked, env: { HOME: '/tmp' }, ...bounds })
  const printed = parseJson(child.stdout.toString())
  if (isObject(printed)) return printed
  const said = child.stderr.toString().trim()
  if (said.startsWith('bwrap: ')) return needed(doesNotWork(said).missing)
  if (child.exitedDueToTimeout)
    return { failure: `it did not end within ${timeMs / 1_000} s and was stopped; return plain data without waiting` }
  const reasons = `it waits for something that never comes, returns more than 4 MB, or needs more than ${memoryKib / 1024} MiB`
  return { failure: `it ended without a result: ${reasons}${said && `; ${quote(said)}`}` }
}

const text = z.string().min(1)
const amount = z.number().positive()
const part = <Members extends z.ZodRawShape>(members: Members) => z.strictObject(members).partial()
const texts = z.array(text)
const named = z.record(z.string(), z.string())
const server = z
  .strictObject({ id: z.string().regex(/^[\w-]{1,64}$/), name: text, transport: z.enum(['http', 'stdio']) })
  .extend({ url: z.optional(text), command: z.optional(texts), auth: z.optional(z.record(z.string(), z.unknown())) })
  .extend({ args: z.optional(texts), env: z.optional(named), headers: z.optional(named) })
  .extend({ permissions: z.optional(part({ files: z.enum(['none', 'read', 'write']), folders: texts, hosts: texts, variables: texts })) })
  .refine((each) => (each.transport === 'http' ? each.url : each.command), 'needs a "url" for http, and a "command" for stdio')

/** `url` belongs to the transport http, `command` (program and arguments) to stdio; `timeout` is in milliseconds, `memory` in bytes. */
export const programShape = part({
  agent: part({ name: text, model: text }),
  mcp: part({ servers: z.array(server) }),
  skills: part({ root: text }),
  rules: part({ root: text }),
  sandbox: part({
    enabled: z.boolean(),
    security: part({ allowWrite: z.array(text), denyRead: z.array(text), allowedDomains: z.array(text) }),
    limits: part({ timeout: amount, memory: amount }),
  }),
})

const names =
  'agent mcp skills rules sandbox name model servers root enabled security limits allowWrite denyRead allowedDomains timeout memory id transport url command auth args env headers permissions files folders hosts variables'

function problemOf(issue: z.core.$ZodIssue, value: unknown): Pick<ConfigProblem, 'key' | 'message'> {
  const { path, message } = issue
  const unknown = issue.code === 'unrecognized_keys' ? issue.keys : []
  const found = unknown.length > 0 ? undefined : path.reduce((at: unknown, key) => Object(at)[key], value)
  const ending = found === undefined ? unknown.map((key) => didYouMean(key, names.split(' '))).join('') : `; found ${quote(found)}`
  return { key: z.core.toDotPath(path), message: `${message}${ending}` }
}

/** Names in one notice what has no effect, so that nobody relies on it. */
function settingsOf({ agent, mcp, skills, rules, sandbox }: z.infer<typeof programShape>): Omit<ProgramResult, 'problems'> {
  const { security, limits } = (sandbox?.enabled ?? true) ? (sandbox ?? {}) : {}
  const idle = {
    'agent.name (choose the agent with --agent)': agent?.name,
    'skills.root (not supported yet)': skills?.root,
    'rules.root (only AGENTS.md is read)': rules?.root !== 'AGENTS.md' && rules?.root,
    'sandbox.security.allowWrite (commands write to a view of the workspace)': security?.allowWrite,
    'sandbox.security.allowedDomains (a project gives no access; use security.allowed_domains of your own file)': security?.allowedDomains,
    'sandbox.limits.memory (commands have a limit of their own)': limits?.memory,
  }
  const named = Object.entries(idle).flatMap(([what, value]) => (value ? [what] : []))
  const settings = {
    ...(agent?.model && { default_model: agent.model }),
    ...(security?.denyRead && { 'security.forbidden_paths': security.denyRead }),
    ...Object.fromEntries((mcp?.servers ?? []).map(({ id, ...each }) => [`mcp.servers.${id}`, each])),
    ...(limits?.timeout && { 'limits.max_run_seconds': limits.timeout / 1_000 }),
  }
  return { settings, notices: named.length === 0 ? [] : [`without effect: ${named.join(', ')}`] }
}
