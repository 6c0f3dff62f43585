/** Implements `sop list | validate | show | verify | enable | disable`: it reads the procedures, says what is wrong, and lets them begin by themselves. */

import { terminalPrompt } from '../../../channels/terminal/audience.ts'
import { readConfigFile } from '../../../config/text/read-toml-file.ts'
import { withRecords } from '../../../host/open/open-records.ts'
import { sopRecords } from '../../../host/records/sop-records.ts'
import { openSchedules } from '../../../host/schedules/schedules.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { count, visible, visibleLines } from '../../../kit/text.ts'
import { findSop, findSops, parseSop, problemLines, type SopFile, sopTools } from '../../../sop/find-sops.ts'
import { assertEnabled, enableSop, triggerState, triggerText } from '../../../sop/triggers.ts'
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
    const states = await withRecords(setup, (base) => found.map((file) => triggerState({ setup, sops: sopRecords(base) }, file)))
    const items = found.map(({ name, path, where, digest, sop, problems }, at) => ({
      ...{ name, description: sop.description, where, path, digest, steps: sop.steps.length, problems: problems.length },
      triggers: states[at] ?? 'none',
    }))
    const lines = items.map(({ name, description, problems, path, triggers }) => {
      const what = problems > 0 ? `${count(problems, 'problem')}; see: braidclaw sop validate ${name}` : description
      return `${name.padEnd(20)} ${what}  (${visible(path)})${triggers === 'none' ? '' : `  [triggers: ${triggers}]`}`
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

export const enable = command({
  flags: { yes: { type: 'boolean', about: 'Enable it without a question' }, ...workspaceFlag },
  args: { name: { type: 'text', about: 'Name of the procedure', complete: 'sops' } },
  examples: [
    ['daily-check', 'shows the file and what begins it, and asks'],
    ['daily-check --yes', 'enables the version that is there now'],
  ],
  details: () => 'A later change of the file stops its triggers, until you enable it again.',
  exits: [3, 4],
  async run(context, { yes = false, workspace }, { name }) {
    const setup = loadSetup(context, { workspace })
    const file = await findSop(setup, await sopTools(setup), name)
    const { stdout } = context.process
    await withRecords(setup, async (base) => {
      const at = { setup, sops: sopRecords(base), schedules: openSchedules(setup, base.memory) }
      assertEnabled(at, file, ['off', 'changed'])
      stdout.write(`# ${visible(file.path)}\n${visibleLines(file.text)}\nIt begins by itself, with your rights, by:\n`)
      for (const trigger of file.sop.triggers) stdout.write(`  ${visible(triggerText(trigger))}\n`)
      const ask = yes ? undefined : terminalPrompt(context)
      if (!yes && !ask)
        throw new CliExit(exitCodes.approval_needed, `error: nobody can be asked here; run: braidclaw sop enable ${name} --yes`)
      const answer = await ask?.(`Let exactly this version of ${name} begin by itself? [y/N] `)
      if (!yes && !/^y(es)?$/i.test(answer?.trim() ?? '')) throw new CliExit(exitCodes.denied, `error: ${name} was not enabled`)
      enableSop(at, file, 'operator')
    })
    stdout.write(`enabled: ${name}\n`)
  },
})

export const disable = command({
  flags: workspaceFlag,
  args: { name: { type: 'text', about: 'Name of the procedure', complete: 'sops' } },
  examples: [['daily-check', 'only a person begins it from now on']],
  async run(context, { workspace }, { name }) {
    const setup = loadSetup(context, { workspace })
    const file = (await findSops(setup, new Map())).find((each) => each.name === name) ?? (await findSop(setup, new Map(), name))
    await withRecords(setup, (base) =>
      enableSop({ sops: sopRecords(base), schedules: openSchedules(setup, base.memory) }, file, 'operator', true),
    )
    context.process.stdout.write(`disabled: ${name}\n`)
  },
})
