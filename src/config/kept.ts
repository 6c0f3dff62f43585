/** The configuration as an earlier start resolved it, kept beside config.toml: it counts as long as nothing it was made of has changed. */

import { existsSync, renameSync, writeFileSync } from 'node:fs'
import { sha256 } from '../kit/sha256.ts'
import type { Config, Origins } from './config.ts'
import { lookedAt } from './known-providers.ts'
import type { Flags } from './layers/flags.ts'
import { homePaths } from './paths.ts'
import { isOurVariable } from './setting.ts'
import { readConfigFile } from './text/read-toml-file.ts'

export type Circumstances = {
  /** Which build it is: another one may make something else of the same file. */
  readonly program: string
  readonly home: string
  readonly cwd: string
  readonly env: { readonly [name: string]: string | undefined }
  readonly flags: Flags
}

/** What `loadConfig` found, where it had nothing to remark. */
export type Found = { readonly config: Config; readonly origins: Origins; readonly file?: string; readonly assumed?: string }

/** Where the values come from is read when somebody asks: few do, and it is the greater part. */
export type Kept = Omit<Found, 'origins'> & { readonly origins: () => Origins }

/** @returns undefined when there is none for these circumstances, or not a whole one: then load it. Never throws. */
export function recall(now: Circumstances): Kept | undefined {
  const key = keyOf(now)
  const read = key === undefined ? undefined : readConfigFile(pathIn(now.home))
  if (key === undefined || read?.state !== 'text' || read.worldWritable) return undefined
  const entry = entriesIn(read.text).find(([sealed, ...texts]) => sealed === seal(key, texts))
  if (entry === undefined) return undefined
  const [, body, origins] = entry
  return { ...JSON.parse(body), origins: () => JSON.parse(origins) }
}

type Entry = readonly [seal: string, body: string, origins: string]

/** Three lines each: a pipeline of several agents or models does not load for each of them anew. */
function entriesIn(text: string): readonly Entry[] {
  const lines = text.split('\n')
  const entries: Entry[] = []
  for (let at = 0; at + 2 < lines.length && entries.length < most; at += 3)
    entries.push([lines[at] ?? '', lines[at + 1] ?? '', lines[at + 2] ?? ''])
  return entries
}

const most = 4

/** It may not succeed: then the next start loads again. Never throws. */
export function keep(now: Circumstances, { origins, ...found }: Found): void {
  const key = keyOf(now)
  if (key === undefined) return
  const texts = [JSON.stringify(found), JSON.stringify(origins)] as const
  const before = readConfigFile(pathIn(now.home))
  const others = before.state === 'text' && !before.worldWritable ? entriesIn(before.text).slice(0, most - 1) : []
  const draft = `${pathIn(now.home)}.${crypto.randomUUID()}`
  try {
    writeFileSync(draft, [[seal(key, texts), ...texts], ...others].flat().join('\n'), { mode: 0o600, flag: 'wx' })
    renameSync(draft, pathIn(now.home))
  } catch {}
}

function pathIn(home: string): string {
  return `${home}/config.kept`
}

/** All that loading looks at. Undefined where that is more than fits here: a project's own file, references to variables, trouble. */
function keyOf({ program, home, cwd, env, flags }: Circumstances): string | undefined {
  if (flags.workspace !== undefined || env.BRAIDCLAW_WORKSPACE || env.BRAIDCLAW_WORKSPACE_DIR) return undefined
  const [user, project] = [`${home}/config.toml`, `${cwd}/.braidclaw/config.toml`]
  if (project !== user && existsSync(project)) return undefined
  const read = readConfigFile(user)
  if (read.state === 'unusable') return undefined
  if (read.state === 'text' && (read.worldWritable || read.text.includes('$') || read.text.includes('WORKSPACE'))) return undefined
  const more = moreFiles(home)
  if (more === undefined) return undefined
  const ours = Object.entries(env).filter(([name]) => name === 'HOME' || isOurVariable(name))
  const providers = lookedAt.map((name) => (name.endsWith('_KEY') ? Boolean(env[name]?.trim()) : (env[name] ?? null)))
  return JSON.stringify([program, home, cwd, flags, ours.sort(), providers, read.state === 'text' ? read.text : null, more])
}

/** Most homes have none of them. */
function moreFiles(home: string): readonly (string | null)[] | undefined {
  const { agentsFiles, envFiles } = homePaths(home)
  const texts: (string | null)[] = []
  for (const path of [...agentsFiles, ...envFiles]) {
    const read = existsSync(path) ? readConfigFile(path) : undefined
    if (read && (read.state !== 'text' || read.worldWritable || read.text.includes('$'))) return undefined
    texts.push(read?.state === 'text' ? read.text : null)
  }
  return texts
}

/** Of both: a file of other circumstances, a torn one and a foreign one look alike. */
function seal(key: string, texts: readonly [body: string, origins: string]): string {
  return sha256([key, ...texts].join('\n'))
}
