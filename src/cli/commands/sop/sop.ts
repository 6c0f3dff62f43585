/** Implements `sop list | validate | show`: it reads the procedures and says what is wrong with them. */

import { readConfigFile } from '../../../config/text/read-toml-file.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { count, visible, visibleLines } from '../../../kit/text.ts'
import { findSop, findSops, parseSop, problemLines, type SopFile, sopTools } from '../../../sop/find-sops.ts'
import { mostVerified, verifySop } from '../../../sop/verify-sop.ts'
import { command } from '../../args/command.ts'
import { jsonFlag, workspaceFlag } from '../../args/turn-flags.ts'
import { CliExit, commandError, exitCodes } from '../../exit.ts'
import { printList } from '../../print-list.ts'

export const list = command({
  flags: { ...workspaceFlag, ...jsonFlag },
  examples: [
    ['', 'of the home and of this workspace'],
    ['--json', 'for scripts'],
  ],
  async run(context, { json = false, workspace }) {
    const setup = loadSetup(context, { workspace })
    const found = await findSops(setup, await sopTools(setup))
    const items = found.map(({ name, path, where, digest, sop, problems }) => ({
      ...{ name, description: sop.description, where, path, digest, steps: sop.steps.length, problems: problems.length },
    }))
    const lines = items.map(({ name, description, problems, path }) => {
      const what = problems > 0 ? `${count(problems, 'problem')}; see: braidclaw sop validate ${name}` : description
      return `${name.padEnd(20)} ${what}  (${visible(path)})`
    })
    printList(context, { items, json, lines, none: `no procedures yet; write ${setup.paths.home}/sops/NAME/SOP.toml (docs/sop.md)` })
  },
})

export const validate = command({
  flags: { ...workspaceFlag, ...jsonFlag },
  args: { names: { type: 'text', many: true, optional: true, about: 'Names, or paths of files; without any: all', complete: 'sops' } },
  examples: [
    ['', 'every procedure; exit 0 when nothing is wrong'],
    ['daily-check', 'one of them'],
    ['./SOP.toml --json', 'a file that is not in its place yet'],
  ],
  exits: [[1, 'there are problems']],
  async run(context, { json = false, workspace }, { names = [] }) {
    const setup = loadSetup(context, { workspace })
    const tools = await sopTools(setup)
    const all = await findSops(setup, tools)
    const files: SopFile[] = names.length === 0 ? [...all] : []
    for (const name of names) {
      const read = readConfigFile(name)
      const known = all.find((each) => each.name === name)
      if (known) files.push(known)
      else if (read.state === 'text') files.push({ name, path: name, where: 'workspace', ...(await parseSop(read.text, { tools })) })
      else if (name.includes('/')) throw commandError(`${name}: ${read.state === 'missing' ? 'the file does not exist' : read.why}`)
      else await findSop(setup, tools, name)
    }
    const { stdout, stderr } = context.process
    if (json)
      stdout.write(`${JSON.stringify(files.map(({ name, path, problems }) => ({ ok: problems.length === 0, name, path, problems })))}\n`)
    else if (files.length === 0) stderr.write('no procedures yet\n')
    else
      for (const { path, sop, problems } of files)
        if (problems.length === 0) stdout.write(`${path} is valid: ${count(sop.steps.length, 'step')}\n`)
    const wrong = files.flatMap(problemLines)
    if (wrong.length === 0) return
    throw new CliExit(
      exitCodes.error,
      json ? '' : [...wrong.map((line) => `error: ${line}`), `${count(wrong.length, 'problem')} found`].join('\n'),
    )
  },
})

export const show = command({
  flags: { ...workspaceFlag, ...jsonFlag },
  args: { name: { type: 'text', about: 'Name of the procedure', complete: 'sops' } },
  examples: [['daily-check', 'the file that counts; --json: every step as it is read']],
  async run(context, { json = false, workspace }, { name }) {
    const setup = loadSetup(context, { workspace })
    const { path, digest, sop, text } = await findSop(setup, await sopTools(setup), name)
    const { stdout } = context.process
    stdout.write(json ? `${JSON.stringify({ ...sop, path, digest })}\n` : `# ${visible(path)}\n${visibleLines(text)}`)
  },
})

export const verify = command({
  flags: { ...workspaceFlag, ...jsonFlag },
  args: { name: { type: 'text', about: 'Name of the procedure', complete: 'sops' } },
  examples: [['daily-check', 'exit 1 with the shortest run that breaks a rule']],
  details:
    () => `Explores every way in which the steps can end, over the threads that run them: every step is reached, no run gets stuck, nothing
begins after a failure that ends the run, and what changes something runs only after a yes to every approval above it.`,
  exits: [[1, 'a rule is broken, or there is too much to explore']],
  async run(context, { json = false, workspace }, { name }) {
    const setup = loadSetup(context, { workspace })
    const tools = await sopTools(setup)
    const { steps } = (await findSop(setup, tools, name)).sop
    if (steps.length > mostVerified) throw commandError(`${name} has ${steps.length} steps; at most ${mostVerified} can be explored`)
    const verdict = verifySop(steps, tools)
    const { outcome, states } = verdict
    const isGood = outcome === 'holds'
    const { stdout } = context.process
    if (json) stdout.write(`${JSON.stringify(verdict)}\n`)
    else if (isGood) stdout.write(`${name}: every rule holds (${count(states, 'state')} explored)\n`)
    if (isGood) return
    const why = {
      broken: () => (outcome === 'broken' ? `broken: ${verdict.property}\n  ${verdict.story.join(' → ')}` : ''),
      unreached: () => (outcome === 'unreached' ? `never reached: ${verdict.steps.join(', ')}` : ''),
      bounded: () => `${count(states, 'state')} were explored, and there are more: nothing is proved; use fewer steps in one group`,
    }
    throw new CliExit(exitCodes.error, json ? '' : `error: ${name}: ${why[outcome]()}`)
  },
})
