/** Opens agent/library.yaml with the files that it names, and answers what an agent, its worker and its tools ask of it. */

import { readFileSync, realpathSync, statSync } from 'node:fs'
import { dirname, isAbsolute, join, sep } from 'node:path'
import { errorText, hasCode } from '../../kit/errors.ts'
import { type Skill, type SkillOwner, skillsOf } from './skill.ts'
import { type LibraryProblem, type ReadContent, readSkillLibrary } from './skill-library.ts'
import { openSkillSearch, type SkillSearch, skillsAnswer, skillsSearchSpec } from './skill-search.ts'

export type AgentSkills = {
  readonly skills: readonly Skill[]
  match(task: AskedTask): Skill | undefined
  /** The compact index; empty when the agent has no skill. */
  index(): string
  /** The source of pi's extension; undefined when the agent has no skill. */
  piExtension(): string | undefined
  openSearch(): SkillSearch
  /** The skills with their texts in one file, which the reader of libraries takes: for a child that cannot see the folder. */
  snapshot(): string
}

type OpenedLibrary =
  | {
      readonly ok: true
      readonly forAgent: (owner: SkillOwner) => AgentSkills
      /** Returns the index; the name is the seed's. An agent without a role has its name as role. */
      readonly getAgentSkillIndex: (agentId: string, role?: string) => string
    }
  | { readonly ok: false; readonly isMissing: boolean; readonly problems: readonly LibraryProblem[]; readonly message: string }

const maxContentBytes = 262_144

export function openLibrary(file: string): OpenedLibrary {
  const text = textOf(file)
  if (!text.ok) return { ok: false, isMissing: text.isMissing, problems: [], message: text.message }
  const read = readSkillLibrary(text.text, contentReader(dirname(file)))
  if (read.ok) return opened(read.skills)
  const lines = read.problems.map(({ line, column, message }) => `${file}:${line}:${column}: ${message}`)
  return { ok: false, isMissing: false, problems: read.problems, message: lines.join('\n') }
}

function opened(skills: readonly Skill[]): OpenedLibrary {
  return {
    ok: true,
    forAgent: (owner) => agentSkills(skills, owner),
    getAgentSkillIndex: (agentId, role = agentId) => skillIndex(skills, { id: agentId, role }),
  }
}

function agentSkills(all: readonly Skill[], owner: SkillOwner): AgentSkills {
  const skills = skillsOf(all, owner)
  return {
    skills,
    match: (task) => matchSkill(skills, owner, task),
    index: () => skillIndex(skills, owner),
    piExtension: () => piExtension(skills, owner),
    openSearch: () => openSkillSearch(skills),
    snapshot: () => snapshotOf(skills),
  }
}

/** Writes JSON, which is YAML too. */
function snapshotOf(skills: readonly Skill[]): string {
  const entries = skills.map(({ invoke, ...skill }) => ({ ...skill, invoke: invoke.map(({ source }) => source) }))
  return `${JSON.stringify({ version: 1, skills: entries })}\n`
}

/** Reads a file of a skill only below the folder of the library, also after links are followed. */
function contentReader(folder: string): ReadContent {
  return (path) => {
    if (isAbsolute(path) || path.split(/[/\\]/).includes('..')) return refused(path, 'must be relative, without "..", below the library')
    try {
      const [root, file] = [realpathSync(folder), realpathSync(join(folder, path))]
      if (!file.startsWith(`${root}${sep}`)) return refused(path, 'leads out of the folder of the library')
      const { size } = statSync(file)
      if (size > maxContentBytes) return refused(path, `has ${size} bytes; at most ${maxContentBytes} are allowed`)
      return { ok: true, text: new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file)) }
    } catch (error) {
      return refused(path, error instanceof TypeError ? 'is not UTF-8' : reasonOf(error))
    }
  }
}

function refused(path: string, why: string) {
  return { ok: false, message: `${JSON.stringify(path)} ${why}` } as const
}

function textOf(file: string) {
  try {
    return { ok: true, text: readFileSync(file, 'utf8') } as const
  } catch (error) {
    return { ok: false, isMissing: hasCode(error, 'ENOENT'), message: `${JSON.stringify(file)} ${reasonOf(error)}` } as const
  }
}

function reasonOf(error: unknown): string {
  return hasCode(error, 'ENOENT') ? 'does not exist' : `cannot be read: ${errorText(error)}`
}

type AskedTask = { readonly title: string; readonly description: string }

/** Limits how much of a description is matched; the purpose of a task stands at its beginning. */
const searchedText = 8_192

/** Matches the title and the description separately, so that no pattern spans both. */
export function matchSkill(skills: readonly Skill[], owner: SkillOwner, { title, description }: AskedTask): Skill | undefined {
  const texts = [title, description.slice(0, searchedText)]
  return skillsOf(skills, owner).find(({ invoke }) => invoke.some(({ matches }) => texts.some(matches)))
}

const heading = `# Skills

These skills are written down. Before you do what one of them is about, call the tool skills_search with its name, and do what its text says.
`

/** Limits the index to about 2,000 tokens. */
const maxBytes = 8_192

/** Returns the index, always the same for the same library; empty when the agent has no skill. A long index is cut, with a note. */
export function skillIndex(skills: readonly Skill[], owner: SkillOwner): string {
  const own = skillsOf(skills, owner)
  if (own.length === 0) return ''
  const lines: string[] = []
  let bytes = Buffer.byteLength(heading) + 100
  for (const { name, summary } of own) {
    const line = `- ${name}: ${summary}`
    bytes += Buffer.byteLength(line) + 1
    if (bytes > maxBytes) break
    lines.push(line)
  }
  const left = own.length - lines.length
  const rest = left === 0 ? [] : [`- and ${left} more: find them with skills_search`]
  return `${[heading, ...lines, ...rest].join('\n')}\n`
}

/**
 * Writes the extension file that gives pi the tool skills_search: it has the skills of one agent inside and needs nothing else. For `pi
 * --no-skills --extension FILE`.
 * @returns undefined when the agent has no skill
 */
function piExtension(skills: readonly Skill[], owner: SkillOwner): string | undefined {
  const own = skillsOf(skills, owner)
  if (own.length === 0) return undefined
  const answers = own.map((skill) => ({
    name: skill.name,
    line: `- ${skill.name}: ${skill.summary}`,
    words: `${skill.summary} ${skill.invoke.map(({ source }) => source).join(' ')}`.toLowerCase(),
    text: skillsAnswer(skill.name, [skill]),
  }))
  return `// Generated by braidclaw from agent/library.yaml for the agent ${owner.id}; changes here are lost.
const skills = ${scriptJson(answers)};
${searchSource}
export default function (pi) {
  pi.registerTool({
    label: "Skills",
    ...${scriptJson(skillsSearchSpec)},
    async execute(_id, { query }) {
      return { content: [{ type: "text", text: answer(String(query ?? "")) }], details: undefined };
    },
  });
}
`
}

/** Writes JSON as JavaScript: older engines refuse two line separators in a text. */
function scriptJson(value: unknown): string {
  return JSON.stringify(value, null, 1).replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029')
}

const searchSource = `
const wordsOf = (text) => text.toLowerCase().match(/[\\p{L}\\p{M}\\p{N}]+/gu) ?? [];

function scoreOf(skill, words) {
  const [name, summary, text] = [skill.name.toLowerCase(), skill.words, skill.text.toLowerCase()];
  return words.reduce((sum, word) => sum + (name.includes(word) ? 10 : 0) + (summary.includes(word) ? 5 : 0) + (text.includes(word) ? 1 : 0), 0);
}

function answer(query) {
  if (query.trim() === "") return skills.map(({ line }) => line).join("\\n");
  const named = skills.find(({ name }) => name.toLowerCase() === query.trim().toLowerCase());
  const scored = skills.map((skill) => ({ skill, score: skill === named ? Infinity : scoreOf(skill, wordsOf(query)) }));
  const hits = scored.filter(({ score }) => score > 0).sort((a, b) => (b.score > a.score) - (b.score < a.score)).slice(0, 10);
  if (hits.length === 0) return "No skill matches " + JSON.stringify(query.slice(0, 200)) + ". Try other words, or an empty query for all names.";
  const others = hits.slice(1).map(({ skill }) => skill.line);
  return hits[0].skill.text + (others.length === 0 ? "" : "\\n\\nOther skills that match:\\n" + others.join("\\n"));
}
`
