/** Reads agents.json, `{ id: { soul, model } }`; the model of the selected agent overrides the environment. */

import { join, normalize, relative } from 'node:path'
import { isObject, parseJson } from '../../kit/json.ts'
import { forms } from '../../kit/settings.ts'
import { didYouMean } from '../../kit/text.ts'
import type { AgentConfig, ConfigProblem } from '../config.ts'
import { homePaths } from '../paths.ts'
import { settingOf } from '../table.ts'
import type { FileRead } from '../text/read-toml-file.ts'
import { quote } from '../text/toml-quote.ts'
import { draftLayer, type Entries, type Here, type Layer, put } from './entries.ts'

export type Agents = {
  readonly agents: { readonly [id: string]: AgentConfig }
  readonly problems: readonly ConfigProblem[]
  /** The file that was read. */
  readonly file?: string
}

export function readAgents(home: string, readFile: (path: string) => FileRead): Agents {
  for (const file of homePaths(home).agentsFiles) {
    const read = readFile(file)
    if (read.state === 'unusable')
      return { file, agents: {}, problems: [{ file, line: read.line, key: '', message: `this file ${read.why}` }] }
    if (read.state === 'text') return { file, ...parse(file, read.text, home) }
  }
  return { agents: {}, problems: [] }
}

/** Returns a layer with the model of the agent that `entries` select. */
export function agentLayer({ agents, file = '' }: Agents, entries: Entries, where: Here): Layer {
  const draft = draftLayer()
  const id = String(entries.get('default_agent')?.value ?? 'default')
  const model = Object.hasOwn(agents, id) ? agents[id]?.model : undefined
  const setting = settingOf(where.table, 'default_model')
  if (model !== undefined && setting) put(draft, { setting, raw: model, where, origin: { source: 'agent', where: file } })
  return draft
}

type Parsed = Pick<Agents, 'agents' | 'problems'>

function parse(file: string, text: string, home: string): Parsed {
  const wrong = (key: string, message: string) => ({ file, key, message })
  const data = parseJson(text)
  if (!isObject(data))
    return { agents: {}, problems: [wrong('', `must hold JSON such as {"coder": {"soul": "souls/coder.md", "model": null}}`)] }
  const agents: { [id: string]: AgentConfig } = {}
  const problems: ConfigProblem[] = []
  for (const [id, raw] of Object.entries(data)) {
    if (!new RegExp(forms.agent.pattern).test(id)) problems.push(wrong(id, `${quote(id)} must be ${forms.agent.says}`))
    else if (!isObject(raw)) problems.push(wrong(id, 'must be an object with "soul" and "model"'))
    else {
      const { agent, whys } = one(raw, home)
      agents[id] = agent
      problems.push(...whys.map(([key, why]) => wrong(`${id}.${key}`, why)))
    }
  }
  return { agents, problems }
}

/** `null` means the same as an absent key. */
function one(raw: { readonly [key: string]: unknown }, home: string) {
  const whys: (readonly [key: string, why: string])[] = []
  const { soul = null, model = null, ...rest } = raw
  for (const key of Object.keys(rest)) whys.push([key, `unknown key${didYouMean(key, ['soul', 'model']) || '; there can be: soul, model'}`])
  for (const [key, value] of Object.entries({ soul, model }))
    if (value !== null && (typeof value !== 'string' || value === '')) whys.push([key, 'must be text or null'])
  const path = typeof soul === 'string' && soul !== '' ? inside(home, soul) : undefined
  if (typeof soul === 'string' && soul !== '' && path === undefined)
    whys.push(['soul', `${quote(soul)} leads out of ${home}; write a path relative to it`])
  const agent: AgentConfig = { ...(path ? { soul: path } : {}), ...(typeof model === 'string' && model !== '' ? { model } : {}) }
  return { agent, whys }
}

function inside(home: string, path: string): string | undefined {
  const full = normalize(join(home, path))
  const way = relative(home, full)
  return path.startsWith('/') || path.includes('\0') || way === '' || way.split('/')[0] === '..' ? undefined : full
}
