/**
 * Opens the skills of a workspace and says which of them may be used: what the user wrote, what was added and approved, and what a trusted
 * project has. A changed file of an added skill disables it.
 */

import { readlinkSync } from 'node:fs'
import { basename, join, relative } from 'node:path'
import { createTrust } from '../../../../config/trust.ts'
import { loadSkillParser, maxSkillBytes, type ParseSkill, readSkills, type Skill } from '../../../../discovery/skill-files.ts'
import { reviewSkill, type SkillFile, type SkillReview } from '../../../../discovery/skill-review.ts'
import { isInside, openTextFiles } from '../../../../discovery/text-files.ts'
import { realOf } from '../../../../kit/proc.ts'
import { grouped, visible } from '../../../../kit/text.ts'
import { quoteText } from '../../../../security/command/syntax/quote.ts'
import type { Setup } from '../../../api.ts'
import { FailureError, orFailure } from '../../../failure.ts'
import { openProjectFiles } from '../../../setup/project-files.ts'
import { skillFolders } from '../../../setup/workspace-folder.ts'
import { type FolderBook, failure, openFolderBook } from '../folders/folder-book.ts'
import { readFolderFiles } from '../folders/folder-files.ts'

/** `usable`: its text may instruct the model; otherwise it is data. `why` says what to do about a skill that may not. */
type SkillState = {
  readonly origin: 'own' | 'added' | 'project' | 'elsewhere'
  readonly state: 'own' | 'trusted' | 'not trusted' | 'not added' | 'approved' | 'disabled' | 'changed' | 'not approved' | 'broken'
  readonly usable: boolean
  readonly why?: string
}

export type Skills = Awaited<ReturnType<typeof openSkills>>

export type SkillContent = Skill & { readonly name: string }

/** No folder needs to exist. `workspace` is a real path. */
export async function openSkills(setup: Setup, workspace: string) {
  const { home } = setup.paths
  const parse = await loadSkillParser()
  const book = openFolderBook<SkillContent>({
    ...{ home, noun: 'skill', book: join(home, 'skills', 'approved.json'), root: join(realOf(join(home, 'skills')), 'added') },
    check: skillChecker(parse),
  })
  const states = createStates(setup, workspace, book)

  /** @throws FailureError for a skill of the user's own */
  function foreign(name: string): string {
    const { folder } = book.find(name)
    if (states.originOf(folder) !== 'own') return name
    throw new FailureError('error', `${visible(folder)} is your own skill: it needs no approval, and only you remove its folder`)
  }

  return {
    ...book,
    ...states,
    approve: (name: string, digest: string) => book.approve(foreign(name), digest),
    remove: (name: string) => book.remove(foreign(name)),
    /** Reads and reviews a folder, also one that is no sound skill. Never throws. */
    review: (folder: string) => reviewFolder(parse, folder),
    /** Reads the skills of all folders, the strongest first. `notices` name what was left out, or is not as it should be. */
    async findAll() {
      const { skills, notices } = await readSkills(skillRoots(setup, workspace))
      const known = skills.map((found) => ({ ...found, ...states.skillState(found.skill.skillDir) }))
      const disabled = known.flatMap(({ origin, usable, why }) => (origin === 'added' && !usable && why !== undefined ? [why] : []))
      return { skills: known, notices: [...notices, ...disabled] }
    },
  }
}

function createStates(setup: Setup, workspace: string, book: FolderBook<SkillContent>) {
  const { root } = book
  const project = setup.config.copyOf ?? workspace

  function originOf(folder: string): SkillState['origin'] {
    const isIn = (place: string) => isInside(place, folder) || isInside(realOf(place), realOf(folder))
    if (isIn(root)) return 'added'
    if (isIn(workspace)) return 'project'
    return skillFolders(setup, workspace).some(isIn) ? 'own' : 'elsewhere'
  }

  /** Returns the name by which the book knows a folder: that of an added skill, or the real path. */
  function nameOf(folder: string): string {
    const real = realOf(folder)
    return isInside(root, real) && real !== root ? relative(root, real) : real
  }

  function inBook(folder: string) {
    const name = nameOf(folder)
    const skill = orFailure(() => book.inspect(name))
    if (skill instanceof FailureError) return { state: 'broken', why: skill.message } as const
    const how = `look at it, then: braidclaw skill approve ${visible(quoteText(name))}`
    const why = skill.state === 'broken' ? skill.problems.map(visible).join('; ') : how
    return { skill, state: skill.state, why: `${visible(basename(folder))} is ${skill.state}: ${why}` }
  }

  /** Says whether the skill in this folder, an absolute path, may instruct the model. Never throws. */
  function skillState(folder: string): SkillState {
    const origin = originOf(folder)
    if (origin === 'own') return { origin, state: 'own', usable: true }
    const not = (state: SkillState['state'], why: string) => ({ origin, state, usable: false, why })
    if (origin === 'elsewhere') return not('not added', `run: braidclaw skill add ${visible(quoteText(folder))}`)
    if (origin === 'project')
      return createTrust(setup.paths.trustedFolders).isTrusted(project)
        ? { origin, state: 'trusted', usable: true }
        : not('not trusted', `this folder is not trusted. Look at it, then: braidclaw trust ${visible(quoteText(project))}`)
    const { state, why } = inBook(folder)
    return state === 'approved' ? { origin, state, usable: true } : not(state, why)
  }

  /**
   * Says whether programs of the skill may run, and from which folder: a private copy of the approved files, or the folder itself of a
   * skill of the user's own. A project's skill needs an approval of its files besides the trust. Never throws.
   */
  function skillScripts(folder: string): { readonly ok: true; readonly folder: string } | { readonly ok: false; readonly why: string } {
    const { origin, usable, why = '' } = skillState(folder)
    if (!usable) return { ok: false, why }
    if (origin === 'own') return { ok: true, folder: realOf(folder) }
    const { skill, why: whyNot } = inBook(folder)
    if (skill?.state !== 'approved') return { ok: false, why: whyNot }
    const copy = orFailure(() => book.copyOf(skill.folder, skill.files))
    return copy instanceof FailureError ? { ok: false, why: copy.message } : { ok: true, folder: copy }
  }

  return { originOf, nameOf, skillState, skillScripts }
}

/** Lists where skills are; those of the project are read by the rules of the gate. */
export function skillRoots(setup: Setup, workspace: string) {
  const files = openProjectFiles(setup, workspace)
  return skillFolders(setup, workspace).map((root) =>
    isInside(workspace, root)
      ? { root: workspace, path: relative(workspace, root), source: 'project', files, within: workspace }
      : { root, path: '', source: isInside(setup.paths.home, root) ? 'home' : 'user', files: openTextFiles(root) },
  )
}

/** The returned function throws a FailureError that says why the folder is not a skill. */
const skillChecker =
  (parse: ParseSkill) =>
  (folder: string, as: string, files = readFolderFiles(folder)) => {
    if (!files.ok) throw failure(as, files.why)
    const read = openTextFiles(folder).readText('SKILL.md', { maxBytes: maxSkillBytes })
    if (!read.ok) throw failure(as, read.message)
    if (read.more) throw failure(as, `SKILL.md has ${grouped(read.size)} bytes; at most ${grouped(maxSkillBytes)} are read`)
    const parsed = parse(read.text, join(folder, 'SKILL.md'))
    if (typeof parsed === 'string') throw failure(as, `SKILL.md: ${parsed}`)
    return { manifest: { ...parsed, name: parsed.skill.name }, files }
  }

const mostReviewBytes = 1_048_576

function reviewFolder(parse: ParseSkill, folder: string): SkillReview {
  const read = readFolderFiles(folder)
  if (!read.ok) return { ...reviewSkill(read.why, []), faults: [{ rule: 'files', path: '.', line: 0, why: read.why }] }
  const texts = openTextFiles(folder)
  let left = mostReviewBytes
  const files = Object.entries(read.files).map(([path, known]): SkillFile => {
    if (known.startsWith('l')) return { path, kind: 'link', text: readlinkSync(join(folder, path)) }
    const text = texts.readText(path, { maxBytes: Math.min(left, maxSkillBytes) })
    left -= text.ok ? text.text.length : 0
    return { ...text, path, kind: known.startsWith('x') ? 'program' : 'file' }
  })
  const skill = files.find(({ path }) => path === 'SKILL.md')?.text
  return reviewSkill(skill === undefined ? 'it has no SKILL.md that is text' : parse(skill, join(folder, 'SKILL.md')), files)
}
