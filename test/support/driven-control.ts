/** Says with what the commands of the control plane are driven to show names and stored texts that would drive a terminal. */

import { type Case, evil, state } from './driven-case.ts'
import { ctrlC } from './talk.ts'

const nowhere = (...words: readonly string[]): Case => ({ words: ['control', ...words, '--url', evil] })
const there = (...words: readonly string[]): Case => ({ words: ['control', ...words], env: { CONTROLPLANE_API_URL: state.control } })

/** By command, as in `driven-commands.ts`. */
export const controlCases: { readonly [command: string]: () => readonly Case[] } = {
  'control serve': () => [
    { words: ['control', 'serve', '--tls-cert', `/nowhere/${evil}`, '--tls-key', 'x'], env: { BRAIDCLAW_HOME: `odd-serve-${evil}` } },
    { words: ['control', '--host', evil], env: { BRAIDCLAW_HOME: `odd-serve-${evil}` } },
  ],
  'control init': () => [
    { words: ['control', 'init'], env: { BRAIDCLAW_HOME: `odd-${evil}` } },
    { words: ['control', 'init', '--database', evil] },
  ],
  'control worker': () => [
    nowhere('worker', '--agent', evil),
    { words: ['control', 'worker', '--key-file', `/nowhere/${evil}`, '--agent', 'a'] },
  ],
  'control status': () => [there('status'), there('status', '--json'), { ...there('status', '--watch'), type: [['needs you', ctrlC]] }],
  'control task': () => [
    there('task', 'list'),
    there('task', 'list', '--json'),
    there('task', 'show', 'TASK-001'),
    there('task', 'log', 'TASK-001'),
    there('task', 'show', evil),
    there('task', 'retry', 'TASK-001', '--note', evil),
    there('task', 'cancel', 'TASK-001'),
    there('task', 'edit', 'TASK-002', '--label', evil),
    there('task', 'add', evil, '--role', evil),
    there('task', 'add', evil, '--role', 'other'),
  ],
  'control approvals': () => [there('approvals'), there('approvals', 'show', 'APPR-001'), there('approvals', 'show', evil)],
  'control revise': () => [there('revise', evil, '--note', evil), there('revise', 'APPR-001', '--note', evil)],
  'control approve': () => [there('approve', 'APPR-001'), nowhere('approve', evil)],
  'control deny': () => [there('deny', 'APPR-001'), nowhere('deny', evil)],
  'control budget': () => [there('budget'), { words: ['control', 'budget', 'set', '--daily', evil] }],
  'control agent': () => [there('agent'), there('agent', 'add', evil), there('agent', 'resume', 'odd')],
  'control key': () => [there('key', 'list', 'odd'), there('key', 'new', evil)],
  'control operator': () => [there('operator'), there('operator', 'new', evil), there('operator', 'revoke', evil)],
  'control schedule': () => [there('schedule'), there('schedule', 'remove', evil)],
  'control run': () => [
    there('run', 'list'),
    there('run', 'show', 'RUN-001'),
    there('run', 'log', 'RUN-001'),
    there('run', 'artifacts', 'RUN-001'),
    there('run', 'log', evil),
  ],
  'control events': () => [there('events'), there('events', '--json'), { ...there('events', '-f'), type: [['202e', ctrlC]] }],
  'control export': () => [there('export')],
  'control verify': () => [there('verify', evil), there('verify', 'RUN-001')],
  'control backup': () => [{ words: ['control', 'backup', `copy-${evil}`] }, { words: ['control', 'backup', `copy-${evil}`] }],
  'control restore': () => [{ words: ['control', 'restore', evil], env: { BRAIDCLAW_HOME: 'empty' } }],
  'control migrate': () => [{ words: ['control', 'migrate', '--from', evil, '--to', 'postgres://127.0.0.1:1/x'] }],
  'control skills-server': () => [{ words: ['control', 'skills-server', '--library', `/nowhere/${evil}`, '--agent', 'a'] }],
  'control pane': () => [nowhere('pane', '--session', 'a')],
  'hostd serve': () => [{ words: ['hostd', 'serve', '--catalogue', `/nowhere/${evil}`] }, { words: ['hostd', 'serve', '--group', evil] }],
  'hostd check': () => [{ words: ['hostd', 'check', `/nowhere/${evil}`] }],
  'hostd list': () => [{ words: ['hostd', 'list', '--socket', `/nowhere/${evil}`] }, { words: ['hostd', 'list', '--catalogue', evil] }],
}
