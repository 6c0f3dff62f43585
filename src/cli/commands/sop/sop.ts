/** Implements `sop list | validate | show`: it reads the procedures and says what is wrong with them. */

import { readConfigFile } from '../../../config/text/read-toml-file.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { count } from '../../../kit/text.ts'
import { findSop, findSops, parseSop, problemLines, type SopFile, shownPath, sopTools } from '../../../sop/find-sops.ts'
import type { Condition, Step } from '../../../sop/sop-file.ts'
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
      return `${name.padEnd(20)} ${what}  (${shownPath(setup, path)})`
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
  examples: [['daily-check', 'its steps, inputs and outputs']],
  async run(context, { json = false, workspace }, { name }) {
    const setup = loadSetup(context, { workspace })
    const { path, digest, sop } = await findSop(setup, await sopTools(setup), name)
    const { stdout } = context.process
    if (json) return void stdout.write(`${JSON.stringify({ ...sop, path, digest })}\n`)
    const inputs = Object.entries(sop.inputs).map(([key, input]) => {
      const fallback = input.default === undefined ? 'required' : `default: ${JSON.stringify(input.default)}`
      return `input  ${key}  ${input.description} (${fallback})\n`
    })
    stdout.write([`${sop.name}  ${sop.description}\n${path}\n`, ...inputs, ...sop.steps.map(stepLine)].join(''))
  },
})

function stepLine(step: Step, at: number): string {
  const { id, kind, tool, args, contentFrom, prompt, onFailure, when, retry, parallel } = step
  const what = kind === 'tool' ? `${tool} ${JSON.stringify({ ...args, ...(contentFrom ? { content_from: contentFrom } : {}) })}` : prompt
  const more = [
    ...(when ? [`when ${conditionText(when)}`] : []),
    ...(parallel === undefined ? [] : [`beside the steps of ${parallel}`]),
    ...(retry > 0 ? [`again after a failure: ${retry}`] : []),
    ...(onFailure === 'continue' ? ['a failure does not end the run'] : []),
  ]
  return `${String(at + 1).padStart(3)}  ${id}  ${kind}  ${what.split('\n').join(' ')}${more.length === 0 ? '' : `  (${more.join('; ')})`}\n`
}

function conditionText({ of, test, not }: Condition): string {
  const [verb, value] = Object.entries(test)[0] ?? []
  return `${not ? 'not ' : ''}${'step' in of ? of.step : of.input} ${verb} ${JSON.stringify(value)}`
}
