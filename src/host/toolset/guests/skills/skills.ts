/**
 * Opens the skills of a workspace and says which of them may be used: what the user wrote, what was added and approved, and what a trusted
 * project has. A changed file of an added skill disables it.
 */

import { closeSync, constants, existsSync, fstatSync, lstatSync, openSync, readlinkSync, readSync, realpathSync } from 'node:fs'
import { basename, join, relative } from 'node:path'
import { createTrust } from '../../../../config/trust.ts'
import { reviewSkill, type SkillFile, type SkillReview } from '../../../../discovery/review/skill-review.ts'
import { loadSkillParser, maxSkillBytes, type ParseSkill, readSkills, type Skill } from '../../../../discovery/skill-files.ts'
import { isInside, openTextFiles } from '../../../../discovery/text-files.ts'
import { grouped, visible } from '../../../../kit/text.ts'
import { quoteText } from '../../../../security/command/syntax/quote.ts'
import type { Setup } from '../../../api.ts'
import { FailureError } from '../../../failure.ts'
import { openProjectFiles } from '../../../setup/project-files.ts'
import { skillFolders } from '../../../setup/workspace-folder.ts'
import { failure, openFolderBook } from '../folders/folder-book.ts'
import { readFolderFiles } from '../folders/folder-files.ts'

/** `usable`: its text may instruct the model; otherwise it is data. `why` says what to do about a skill that may not. */
export type SkillState = {
  readonly origin: 'own' | 'added' | 'project'
  readonly state: 'own' | 'trusted' | 'not trusted' | 'approved' | 'disabled' | 'changed' | 'not approved' | 'broken'
  readonly usable: boolean
  readonly why?: string
}

/** `folder` has exactly the approved files and may be mounted read-only. */
export type SkillScripts = { readonly ok: true; readonly folder: string } | { readonly ok: false; readonly why: string }

export type Skills = Awaited<ReturnType<typeof openSkills>>

export type SkillContent = Skill & { readonly name: string }

/** No folder needs to exist. `workspace` is a real path. */
export async function openSkills(setup: Setup, workspace: string) {
  const { home } = setup.paths
  const parse = await loadSkillParser()
  const root = join(realOf(join(home, 'skills')), 'added')
  const book = openFolderBook<SkillContent>({
    home,
    noun: 'skill',
    book: join(home, 'skills', 'approved.json'),
    root,
    check: (folder, as, files) => checkSkill(parse, { folder, as, files }),
  })
  const trusts = () => createTrust(setup.paths.trustedFolders).isTrusted(setup.config.copyOf ?? workspace)

  /** Returns the name by which the book knows a folder: that of an added skill, or the real path. */
  function nameOf(folder: string): string {
    const real = realOf(folder)
    return isInside(root, real) && real !== root ? relative(root, real) : real
  }

  function originOf(folder: string): SkillState['origin'] {
    if (isInside(root, realOf(folder))) return 'added'
    return isInside(workspace, folder) || isInside(workspace, realOf(folder)) ? 'project' : 'own'
  }

  /** Says whether the skill in this folder, an absolute path, may instruct the model. Never throws. */
  function skillState(folder: string): SkillState {
    const origin = originOf(folder)
    if (origin === 'own') return { origin, state: 'own', usable: true }
    if (origin === 'project') {
      const why = `this folder is not trusted. Look at it, then: braidclaw trust ${visible(quoteText(setup.config.copyOf ?? workspace))}`
      return trusts() ? { origin, state: 'trusted', usable: true } : { origin, state: 'not trusted', usable: false, why }
    }
    const { state, why } = stateInBook(folder)
    return { origin, state, usable: state === 'approved', ...(state === 'approved' ? {} : { why }) }
  }

  function stateInBook(folder: string) {
    const name = nameOf(folder)
    const how = `look at it, then: braidclaw skill approve ${visible(quoteText(name))}`
    try {
      const skill = book.inspect(name)
      const problems = skill.state === 'broken' ? skill.problems.map(visible).join('; ') : how
      return { skill, state: skill.state, why: `${visible(basename(folder))} is ${skill.state}: ${problems}` }
    } catch (error) {
      if (!(error instanceof FailureError)) throw error
      return { state: 'broken', why: error.message } as const
    }
  }

  /** @throws FailureError for a skill of the user's own */
  function assertForeign(name: string): void {
    const { folder } = book.find(name)
    if (originOf(folder) === 'own')
      throw new FailureError('error', `${visible(folder)} is your own skill: it needs no approval, and only you remove its folder`)
  }

  return {
    ...book,
    approve(name: string, digest: string) {
      assertForeign(name)
      return book.approve(name, digest)
    },
    remove(name: string) {
      assertForeign(name)
      return book.remove(name)
    },
    nameOf,
    skillState,
    /** Reads and reviews a folder, also one that is no sound skill. Never throws. */
    review: (folder: string) => reviewFolder(parse, folder),
    /**
     * Says whether programs of the skill may run, and from which folder: a private copy of the approved files, or the folder itself of a
     * skill of the user's own. A project's skill needs an approval of its files besides the trust. Never throws.
     */
    skillScripts(folder: string): SkillScripts {
      const { origin, usable, why = '' } = skillState(folder)
      if (!usable) return { ok: false, why }
      if (origin === 'own') return { ok: true, folder: realOf(folder) }
      const { skill, state, why: whyNot } = stateInBook(folder)
      if (skill === undefined || skill.state === 'broken' || state !== 'approved') return { ok: false, why: whyNot }
      try {
        return { ok: true, folder: book.copyOf(skill.folder, skill.files) }
      } catch (error) {
        if (!(error instanceof FailureError)) throw error
        return { ok: false, why: error.message }
      }
    },
    /** Reads the skills of all folders, the strongest first. `notices` name what was left out, or is not as it should be. */
    async findAll() {
      const { skills, notices } = await readSkills(skillRoots(setup, workspace))
      const known = skills.map((found) => ({ ...found, ...skillState(found.skill.skillDir) }))
      const disabled = known.flatMap(({ origin, usable, why }) => (origin === 'added' && !usable && why !== undefined ? [why] : []))
      return { skills: known, notices: [...notices, ...disabled] }
    },
  }
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

type Checking = { readonly folder: string; readonly as: string; readonly files?: ReturnType<typeof readFolderFiles> | undefined }

/** @throws FailureError that says why the folder is not a skill */
function checkSkill(parse: ParseSkill, { folder, as, files = readFolderFiles(folder) }: Checking) {
  if (!files.ok) throw failure(as, files.why)
  const read = openTextFiles(folder).readText('SKILL.md', { maxBytes: maxSkillBytes })
  if (!read.ok) throw failure(as, read.message)
  if (read.more) throw failure(as, `SKILL.md has ${grouped(read.size)} bytes; at most ${grouped(maxSkillBytes)} are read`)
  const parsed = parse(read.text, join(folder, 'SKILL.md'))
  if (typeof parsed === 'string') throw failure(as, `SKILL.md: ${parsed}`)
  return { manifest: { ...parsed, name: parsed.skill.name }, files }
}

const [mostFileBytes, mostReviewBytes] = [maxSkillBytes, 1_048_576]

function reviewFolder(parse: ParseSkill, folder: string): SkillReview {
  const read = readFolderFiles(folder)
  if (!read.ok) return { ...reviewSkill(read.why, []), faults: [{ rule: 'files', path: '.', line: 0, why: read.why }] }
  let left = mostReviewBytes
  const files = Object.entries(read.files).map(([path, known]): SkillFile => {
    const kind = known.startsWith('x') ? 'program' : known.startsWith('l') ? 'link' : 'file'
    const at = join(folder, path)
    const content = kind === 'link' ? new TextEncoder().encode(readlinkSync(at)) : firstBytes(at, Math.min(left, mostFileBytes))
    left -= content.length
    return { path, kind, content, size: lstatSync(at).size }
  })
  const text = openTextFiles(folder).readText('SKILL.md', { maxBytes: maxSkillBytes })
  return reviewSkill(text.ok ? parse(text.text, join(folder, 'SKILL.md')) : text.message, files)
}

function firstBytes(path: string, most: number): Uint8Array {
  const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    const bytes = new Uint8Array(Math.min(fstatSync(file).size, most))
    return bytes.subarray(0, readSync(file, bytes))
  } finally {
    closeSync(file)
  }
}

function realOf(path: string): string {
  return existsSync(path) ? realpathSync(path) : path
}
