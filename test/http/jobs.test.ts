/** A person sees and stops the commands in the background of a conversation: by HTTP, at the terminal and in a chat. */

import { expect, test } from 'bun:test'
import { gateway, tokenOf } from '../support/gateway.ts'
import { needs } from '../support/needs.ts'
import { talk } from '../support/talk.ts'
import { call, home, scripted } from '../support/turns.ts'

const real = test.if(needs('bwrap'))
const start = call('shell', { command: 'echo up; exec sleep 60', background: true })

real(
  'by HTTP, and nobody does who may not see the conversation',
  async () => {
    using at = home()
    const { env } = scripted(at, [start, { text: 'It runs.' }, call('shell_output', { id: 'job-1' }), { text: 'It ended.' }])
    await using server = await gateway(at, ['--auto'], { env })
    const { body } = await server.ask('/chat', { message: 'serve' })
    const id = body.conversation_id
    const other = { headers: { authorization: `Bearer ${await tokenOf(at, 'other', '--scope', 'chat', '--scope', 'read')}` } }
    expect((await server.ask(`/conversations/${id}/jobs`, undefined, other)).status).toBe(404)
    expect((await server.ask(`/conversations/${id}/jobs/job-1/stop`, {}, other)).status).toBe(404)
    const list = async () => (await server.ask(`/conversations/${id}/jobs`)).body.jobs
    expect(await list()).toEqual([
      { id: 'job-1', command: 'echo up; exec sleep 60', started: expect.any(Number), state: 'running', bytes: 3 },
    ])
    expect((await server.ask(`/conversations/${id}/jobs/job-2/stop`, {})).status).toBe(404)
    expect((await server.ask(`/conversations/${id}/jobs/x/stop`, {})).status).toBe(400)
    expect((await server.ask(`/conversations/${id}/jobs/job-1/stop`, {})).body).toEqual({ id: 'job-1', stopped: true })
    expect(await list()).toMatchObject([{ state: 'ended', end: 'stopped (by token test)' }])
    const told = await server.ask('/chat', { message: 'and?', conversation_id: id })
    expect(told.body.ending.code).toBe('answered')
  },
  60_000,
)

real(
  'at the terminal',
  async () => {
    using at = home()
    const { stdout } = await talk(
      at,
      [start, { text: 'It runs.' }],
      [
        ['> ', '/jobs\r'],
        ['no command was started', 'serve\r'],
        ['It runs.', '/jobs\r'],
        ['printed 3 bytes', '/jobs stop\r'],
        ['usage: /jobs', '/jobs stop job-7\r'],
        ['no job-7 runs', '/jobs stop job-1\r'],
        ['job-1 was stopped', '/jobs\r'],
        ['ended: stopped (by you)', '/exit\r'],
      ],
      ['--auto'],
    )
    expect(stdout).toContain('echo up; exec sleep 60')
  },
  60_000,
)
