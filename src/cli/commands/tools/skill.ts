/** Implements `skill list | lint | new` and defines the other commands of skills: which are used, and what is in them. */

import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { CliContext } from '../../../channels/terminal/context.ts'
import { skillName } from '../../../discovery/skill-files.ts'
import type { SkillFinding, SkillReview } from '../../../discovery/skill-review.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { workspaceOf } from '../../../host/setup/workspace-folder.ts'
import type { GuestFolder, SoundFolder } from '../../../host/toolset/guests/folders/folder-book.ts'
import { openSkills, type SkillContent, type Skills } from '../../../host/toolset/guests/skills/skills.ts'
import { count, didYouMean, quote, visible } from '../../../kit/text.ts'
import { command } from '../../args/command.ts'
import { pasteable } from '../../args/resolve-command.ts'
import { jsonFlag, workspaceFlag } from '../../args/turn-flags.ts'
import { CliExit, commandError, exitCodes, usageError } from '../../exit.ts'
import { printList } from '../../print-list.ts'
import { folderCommands, line } from './folder-commands.ts'

function open(context: CliContext, workspace?: string): Promise<Skills> {
  const setup = loadSetup(context, { workspace })
  return openSkills(setup, workspaceOf(setup))
}

export const list = command({
  flags: { ...workspaceFlag, ...jsonFlag },
  examples: [['', 'what is there, and which of it is used']],
  async run(context, { workspace, json = false }) {
    const skills = await open(context, workspace)
    const found = await skills.findAll()
    for (const notice of found.notices) context.process.stderr.write(`note: ${visible(notice)}\n`)
    printList(context, {
      items: found.skills.map(({ skill, origin, state, usable, why }) => ({ ...skill, origin, state, usable, why })),
      json,
      lines: found.skills.map(({ skill, origin, state }) =>
        `${visible(skill.name).padEnd(24)} ${origin.padEnd(8)} ${state.padEnd(13)} ${line(skill.description)}`.trimEnd(),
      ),
      none: `no skills; write one: braidclaw skill new NAME, or add one: braidclaw skill add FOLDER`,
    })
  },
})

/** Returns the book's name of a skill that the user named by its folder or its name. */
async function nameIn(skills: Skills, name: string, { cwd }: CliContext): Promise<string> {
  if (name.includes('/') || name === '.') return skills.nameOf(resolve(cwd, name))
  const added = skills.list().map((each) => each.name)
  if (added.includes(name)) return name
  const all = (await skills.findAll()).skills.map(({ skill }) => skill)
  const found = all.find((skill) => skill.name === name)
  if (found !== undefined) return skills.nameOf(found.skillDir)
  const near = didYouMean(name, [...added, ...all.map((skill) => skill.name)])
  throw usageError(`no skill ${quote(name)}${near || '; list them: braidclaw skill list'}`)
}

function facts(skill: GuestFolder<SkillContent>, skills: Skills) {
  const { name, folder, entry } = skill
  const known = { name, folder, source: entry?.source, ...skills.skillState(folder), review: skills.review(folder) }
  if (skill.state === 'broken') return { ...known, problems: skill.problems }
  return { ...known, ...skill.manifest.skill, digest: skill.files.digest, files: skill.files.files }
}

function describe(skill: SoundFolder<SkillContent>, skills: Skills): readonly string[] {
  const { folder, entry, files, manifest } = skill
  const { origin, state, why } = skills.skillState(folder)
  const review = skills.review(folder)
  const scripts = skills.skillScripts(folder)
  return [
    `${visible(manifest.name)}: ${state}${origin === 'own' ? '' : ` (${origin})`}`,
    `  ${line(manifest.skill.description)}`,
    `  from       ${line(entry?.source ?? folder)}`,
    ...Object.entries(review.does).map(([what, words]) => `  ${what.padEnd(10)} ${line(words.join(', ')) || 'none'}`),
    `  files      ${count(Object.keys(files.files).length, 'file')}, sha256 ${files.digest.slice(0, 12)}`,
    ...findingLines(review).map((each) => `  ${each}`),
    ...(why === undefined ? [] : [`not used: ${line(why)}`]),
    ...(scripts.ok || why !== undefined || review.does.scripts.length === 0 ? [] : [`its scripts do not run: ${line(scripts.why)}`]),
  ]
}

function findingLines({ suspicious, faults }: SkillReview): readonly string[] {
  const says = (label: string) => (finding: SkillFinding) =>
    `${label} ${line(finding.path)}${finding.line > 0 ? `:${finding.line}` : ''} ${finding.rule}: ${line(finding.why)}`
  return [...suspicious.map(says('suspicious')), ...faults.map(says('fault     '))]
}

const common = folderCommands<SkillContent, Skills>({
  ...{ noun: 'skill', names: 'skills', sample: 'pdf-forms', open, nameIn, describe, facts },
  sources: 'A folder with a SKILL.md, git+URL#REF:FOLDER or npm:NAME@VERSION',
})
export const { show, approve, update, remove, install: add } = common

export const lint = command({
  flags: jsonFlag,
  args: { path: { type: 'text', about: 'The folder or the name of a skill', complete: 'skills' } },
  examples: [['./pdf-forms', 'its faults, and what in it is suspicious; exit 1 when there is any']],
  async run(context, { json = false }, { path }) {
    const skills = await open(context)
    const folder = resolve(context.cwd, path)
    const name = existsSync(folder) ? skills.nameOf(folder) : await nameIn(skills, path, context)
    const review = skills.review(skills.inspect(name).folder)
    const lines = findingLines(review)
    if (json) context.process.stdout.write(`${JSON.stringify(review)}\n`)
    else context.process.stdout.write(lines.length === 0 ? 'nothing to say\n' : lines.map((each) => `${each}\n`).join(''))
    if (lines.length > 0) throw new CliExit(exitCodes.error)
  },
})

const template = (name: string) => `---
name: ${name}
description: Say in one sentence what it does. Use when somebody asks for it.
---

# ${name}

1. Say what to do first, as to a colleague.
2. Name the commands to run, such as \`sh scripts/check.sh FILE\`.
`

export const create = command({
  args: { name: { type: 'text', about: 'Name of the skill and of its folder' } },
  examples: [['pdf-forms', 'a folder here, with a SKILL.md and a script']],
  run(context, _flags, { name }) {
    if (!skillName.test(name)) throw usageError(`${quote(name)} is not a name: small letters, digits and "-", 64 at most`)
    const folder = resolve(context.cwd, name)
    if (existsSync(folder)) throw commandError(`${folder} is there already; nothing was written`)
    mkdirSync(join(folder, 'scripts'), { recursive: true })
    writeFileSync(join(folder, 'SKILL.md'), template(name))
    writeFileSync(join(folder, 'scripts', 'check.sh'), '#!/bin/sh\nset -eu\nwc -l "$1"\n', { mode: 0o755 })
    context.process.stdout.write(`${folder}\n`)
    context.process.stderr.write(`check it: braidclaw skill lint ${pasteable([folder])}; use it: move it to ~/.agents/skills\n`)
  },
})
