/** Evaluates a configuration program in a sandbox of its own, checks what it returns, and turns it into settings. */

import { join, parse } from 'node:path'
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

type Problem = ProgramResult['problems'][number]

const [timeMs, memoryKib] = [5_000, 1024 * 1024]

/** @param asked `{ source, env }` as JSON */
export function evaluateProgram(asked: string): ProgramResult {
  const ran = confined(Buffer.from(asked))
  if (typeof ran === 'string') return broken([{ key: '', message: ran }])
  if (Array.isArray(ran.faults)) return broken(ran.faults)
  const read = programShape.safeParse(ran.value)
  return read.success ? { ...settingsOf(read.data), problems: [] } : broken(problemsIn(read.error.issues, ran.value))
}

function broken(problems: readonly Problem[]): ProgramResult {
  return { settings: {}, notices: [], problems }
}

/** The program sees the system's programs and itself: no home, no workspace, no network, and of the environment only NODE_ENV. */
function confined(asked: Buffer): string | { readonly faults?: unknown; readonly value?: unknown } {
  const needed = (why: string) => `it is evaluated only in a sandbox; ${why}`
  if (process.platform !== 'linux') return needed(notLinux)
  const bwrap = Bun.which('bwrap', { PATH: fixedPath })
  if (bwrap === null) return needed(notInstalled.missing)
  const module = join(import.meta.dir, `run-program${parse(import.meta.path).ext}`)
  const script = "process.stdout.write(await (await import('/run/program.ts')).runProgram())"
  const [own, argv] = isCompiled()
    ? [[], ['__config']]
    : [
        ['--ro-bind', module, '/run/program.ts'],
        ['--config=/dev/null', '--no-env-file', '--no-install', '-e', script],
      ]
  const systems = ['/usr', '/bin', '/lib', '/lib64', '/nix/store', '/gnu/store'].flatMap((path) => ['--ro-bind-try', path, path])
  const view = [
    ...systems,
    ...'--proc /proc --dev /dev --size 1048576 --tmpfs /tmp --ro-bind'.split(' '),
    process.execPath,
    '/run/braidclaw',
    ...own,
  ]
  const inside = [...namespaceArguments(new Set()), ...view, ...'--remount-ro / --chdir /tmp -- /run/braidclaw'.split(' '), ...argv]
  const limits = ['/bin/sh', '-c', `ulimit -c 0; ulimit -d ${memoryKib}; ulimit -t ${timeMs / 500}; exec "$@"`, 'sh']
  const bounds = { timeout: timeMs, killSignal: 'SIGKILL', maxBuffer: 4_000_000 } as const
  const child = Bun.spawnSync([...limits, bwrap, ...inside], { stdin: asked, env: { HOME: '/tmp' }, ...bounds })
  const printed = parseJson(child.stdout.toString())
  if (isObject(printed)) return printed
  const said = child.stderr.toString().trim()
  if (said.startsWith('bwrap: ')) return needed(doesNotWork(said).missing)
  if (child.exitedDueToTimeout) return `it did not end within ${timeMs / 1_000} s and was stopped; return plain data without waiting`
  return `it ended without a result: it waits for something that never comes, returns more than 4 MB, or needs more than ${memoryKib / 1024} MiB${said && `; ${quote(said)}`}`
}

const text = z.string('must be text').min(1, 'must be text that is not empty')
const texts = z.array(text, 'must be a list of texts')
const amount = z.number('must be a number').positive('must be greater than 0')
const part = <Members extends z.ZodRawShape>(members: Members) => z.strictObject(members, 'must be an object').partial()
const server = z
  .strictObject({ id: text, name: text, transport: z.enum(['http', 'stdio'], 'must be "http" or "stdio"') }, 'must be an object')
  .extend({ url: z.optional(text), command: z.optional(texts), auth: z.optional(z.record(z.string(), z.unknown(), 'must be an object')) })
  .refine((each) => (each.transport === 'http' ? each.url : each.command), 'needs a "url" for http, and a "command" for stdio')

/** `url` belongs to the transport http, `command` (program and arguments) to stdio; `timeout` is in milliseconds, `memory` in bytes. */
export const programShape = part({
  agent: part({ name: text, model: text }),
  mcp: part({ servers: z.array(server, 'must be a list') }),
  skills: part({ root: text }),
  rules: part({ root: text }),
  sandbox: part({
    enabled: z.boolean('must be true or false'),
    security: part({ allowWrite: texts, denyRead: texts, allowedDomains: texts }),
    limits: part({ timeout: amount, memory: amount }),
  }),
})

const keys =
  'agent mcp skills rules sandbox name model servers root enabled security limits allowWrite denyRead allowedDomains timeout memory'
const serverKeys = 'id name transport url command auth'

function problemsIn(issues: readonly z.core.$ZodIssue[], value: unknown): Problem[] {
  return issues.flatMap((issue) =>
    (issue.code === 'unrecognized_keys' ? issue.keys : [undefined]).map((name) => {
      const path = [...issue.path, ...(name === undefined ? [] : [name])].map(String)
      const found = path.reduce((at: unknown, key) => Object(at)[key], value)
      const near = didYouMean(name ?? '', (path.includes('servers') ? serverKeys : keys).split(' '))
      const why = name === undefined ? (found === undefined ? 'is missing' : issue.message) : `unknown key${near}`
      return { key: path.join('.').replace(/\.(\d+)/g, '[$1]'), message: found === undefined ? why : `${why}; found ${quote(found)}` }
    }),
  )
}

/** Names in one notice what has no effect, so that nobody relies on it. */
function settingsOf({ agent, mcp, skills, rules, sandbox }: z.infer<typeof programShape>): Omit<ProgramResult, 'problems'> {
  const { security, limits } = sandbox?.enabled ? sandbox : {}
  const idle = {
    'agent.name (choose the agent with --agent)': agent?.name,
    'mcp.servers (MCP servers are configured but not supported yet)': mcp?.servers?.length,
    'skills.root (not supported yet)': skills?.root,
    'rules.root (only AGENTS.md is read)': rules?.root !== 'AGENTS.md' && rules?.root,
    'sandbox.security.allowWrite (commands write to a view of the workspace; for sandboxAdapter.wrap)': security?.allowWrite,
    'sandbox.security.allowedDomains (a project gives no access; use security.allowed_domains of your own file)': security?.allowedDomains,
    'sandbox.limits.memory (commands have a limit of their own; for sandboxAdapter.wrap)': limits?.memory,
  }
  const named = Object.entries(idle).flatMap(([what, value]) => (value ? [what] : []))
  const settings = {
    default_model: agent?.model,
    'security.forbidden_paths': security?.denyRead,
    'limits.max_run_seconds': limits?.timeout && limits.timeout / 1_000,
  }
  return { settings: JSON.parse(JSON.stringify(settings)), notices: named.length === 0 ? [] : [`without effect: ${named.join(', ')}`] }
}
