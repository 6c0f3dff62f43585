/** Lists every rule that allows, asks about or refuses a call, each with one line; the rules for commands follow below. */

export const rules = {
  estop: 'An emergency stop is set; no tool runs until it is cleared.',
  'tool.unknown': 'No tool has this name.',
  'tool.not_allowed': "The tool exists, but this channel's tools_allow does not list it.",
  'schema.malformed': 'The call has no name, or its arguments are not a JSON object or hold half a character.',
  'schema.invalid': "The arguments do not fit the tool's JSON Schema.",
  'redaction.secret':
    'The arguments hold the value of a registered secret or a text in the format of a key; no tool writes, runs or sends one.',
  'redaction.label': 'The arguments hold the label that stands for a hidden secret; it would take the place of the real value.',
  'path.empty': 'A path must name something.',
  'path.bad_character': 'A path must not hold control or text-direction characters, nor half a character.',
  'path.too_long': 'A path may have 4,096 bytes, each of its names 255.',
  'path.tilde_user': "~user is not expanded; write ./~name for a file that begins with a tilde, ~/ for one's own home.",
  'path.too_many': 'A pattern matches more names than can be looked at for symbolic links.',
  'path.outside_workspace': 'workspace_only is on, and the path is outside the workspace; a command on a private view may name it.',
  'path.forbidden': 'The path lies under one of forbidden_paths.',
  'path.forbidden_read': 'The file matches one of forbidden_reads; its name may be listed, but its content is not read.',
  'path.kernel': '/proc, /sys and /dev are the machine itself, not files. A command on a private view reads those of its sandbox.',
  'path.protected': 'The path belongs to the runtime, or is one that other programs execute: git hooks, start-up files, editor tasks.',
  'url.invalid': 'The text is not an absolute http(s) URL, or holds characters that parsers disagree about.',
  'url.scheme': 'Only http and https are fetched.',
  'url.userinfo': 'A URL must not carry a user name or password.',
  'url.host_spelling': 'The host is an address or name in disguise: not spelt as it is resolved.',
  'url.local_name': 'The name belongs to this machine or its local network.',
  'url.private_address': 'The address is not a public one: private, loopback, link-local, reserved or a tunnel to such.',
  'url.port': 'Only ports 80, 443 and those of allowed_ports are used.',
  'url.method': 'Only GET, HEAD, OPTIONS, POST, PUT, PATCH and DELETE are sent.',
  'url.not_listed': 'A command in the sandbox reaches only the hosts that it was given.',
  'url.redirect': 'A redirect leads to a riskier request than the one that was allowed.',
  'git.remote': 'Git can reach this remote only in a way that is not judged: over plain http, for a partial clone, by several addresses.',
  'git.refs': 'A push would send something that is not a branch or tag of the repository, or depends on settings.',
  'git.settings': 'Settings of the repository would make git run a program for a fetch or push, or reach another server.',
  'autonomy.low': 'Low risk runs by itself.',
  'autonomy.readonly': 'autonomy is readonly: only low-risk tools that read, and commands that only read.',
  'autonomy.dropped': 'autonomy is readonly: the command runs on a private view of the workspace, and its changes are always dropped.',
  'autonomy.transaction': 'The command runs on a private view of the workspace; its changes are judged before they are applied.',
  'autonomy.unlisted_asks': 'The sandbox confines the command, but it is not allow-listed: it needs a yes.',
  'autonomy.network_asks':
    'A command would get network access, or a request goes to a host that allowed_domains does not list: a yes must name the host.',
  'autonomy.direct_asks': 'The command would work on the workspace itself, without a private view, which needs a yes at every level.',
  'autonomy.direct_refused': 'The command would work on the workspace itself, and security.direct is "deny".',
  'autonomy.medium_asks': 'autonomy is supervised: medium risk needs a yes.',
  'autonomy.approve_all_medium': 'Medium risk was approved in advance for this run (--auto).',
  'autonomy.copy': 'A file tool changes only the private copy of the folder in which the run works.',
  'autonomy.always': 'The operator said "always" to this executable and sub-command.',
  'autonomy.high_blocked': 'autonomy is supervised: high risk is blocked.',
  'autonomy.full': 'autonomy is full: every call that no policy forbids runs.',
  'egress.rule_of_two':
    'The conversation has read content of others and something private; whatever could carry that away needs a yes, at every level.',
  'approval.nobody': 'An approval is needed, and no person can give one here.',
  'approval.unattended': 'An approval is needed, and a wiggum run asks nobody.',
  'approval.expiry': 'An approval was needed, and no person gave one in time.',
  'approval.unusable': 'The approval cannot be used: it expired, was used before or is for another plan.',
  'approval.altered': 'Another program than BraidClaw changed the stored answer, so it counts as a refusal.',
  'approval.stale': 'The call would no longer run exactly what was judged; it needs a new approval.',
  'tool.changed': 'An executable does not exist any more, or is another file than the one that was described and judged.',
  'shell.no_plan': 'The gate has no analysed plan for the command, so there is nothing to run.',
  'rule.structure': 'The rules for the structure of the project have a mistake, so every change asks.',
  'changes.none': 'The command changed nothing in the workspace.',
  'changes.readonly': 'autonomy is readonly: the changes of a command are dropped.',
  'changes.protected': 'The command changed a path that belongs to the runtime, or one that other programs execute.',
  'changes.forbidden': 'The command changed something under one of forbidden_paths, or a file of forbidden_reads.',
  'changes.git':
    'The command changed files that make git run programs or read other places: settings, hooks, links, instructions of a rebase.',
  'changes.git_asks':
    'A repository or harmless settings of git changed, or a plain git command brought files that other programs run; a person may allow it.',
  'changes.link': 'The command made a symbolic link that leads out of the workspace.',
  'changes.secret': 'A new or changed file holds the value of a registered secret.',
  'changes.limits': 'The command deleted or changed more than is applied without a review.',
  'changes.supervised': 'autonomy is supervised: changes to the workspace need a yes.',
  'changes.not_harmless':
    'A change is not on the list of harmless changes: known text, source and data where such files are, no executable, no settings of tools.',
  'changes.always': 'The operator said "always" to changes of these paths by this command.',
  'changes.ignored': 'Git ignores everything that changed, and no program runs or obeys it unasked.',
  'changes.harmless': 'Every change is harmless, and these were approved in advance (--auto).',
  'changes.approved': 'A person approved the command before it ran, which covers its changes.',
  'changes.copy': 'The changes stay in the private copy of the folder in which the run works.',
  'changes.direct':
    'A command that worked on the workspace itself left something that other programs run or obey; it was moved aside, and can be looked at.',
  'skill.allowed_tools': 'The skill or command that began the turn lists the tools that it uses, and this call is not among them.',
  'channel.tools': 'The channel does not have this tool, whatever the gate said.',
  'channel.readonly': 'The channel only reads, whatever the gate said.',
  'gate.error': 'The gate itself failed; in doubt it denies.',
} as const

export type RuleName = keyof typeof rules

/** A refusal whose reason tells a person and a model what to do. */
export type Refusal = { readonly ok: false; readonly rule: RuleName; readonly reason: string }

export function refuse(rule: RuleName, reason: string): Refusal {
  return { ok: false, rule, reason }
}

/** @returns the one-line meaning of a rule, including the rules in `more` */
export function meaningOf(rule: string, more: { readonly [rule: string]: string } = {}): string | undefined {
  return Object.entries({ ...more, ...rules }).find(([name]) => name === rule)?.[1]
}

/** Lists every rule that allows a command, rates it high or blocks it, each with one line. */
export const commandRules = {
  'command.allowed': 'Every command in it is allow-listed and does nothing beyond that.',
  'command.nul': 'A NUL byte ends the text for one program and not for the next.',
  'command.hidden': 'Control, text-direction or invisible characters make the text read differently from what it does.',
  'command.unparseable': 'The text is not complete, valid shell.',
  'command.limit': 'The text is larger, deeper or more branched than is looked through.',
  'command.forbidden': 'A command of forbidden_commands stands somewhere in it.',
  'command.destructive': 'It matches a pattern that destroys data or stops the machine, whatever forbidden_commands lists.',
  'command.fork_bomb': 'A function starts itself again and again in the background or in a pipe.',
  'command.download_to_shell': 'Something downloaded would be executed unseen.',
  'command.not_allowed': 'A command in it is not on the allow list.',
  'command.dynamic': 'Which command runs is known only when it runs.',
  'command.unclear': 'An argument that decides what is read, written or run is known only when it runs.',
  'command.option': 'An option or argument lets an allow-listed tool run programs or change more than it should.',
  'command.environment': 'A variable is set that decides which programs run or how.',
  'command.code': 'A shell, interpreter or builtin would run code that is not looked through.',
  'command.privilege': 'It asks for the rights of another user.',
  'command.shadows': 'A function or alias takes the name of a command.',
} as const

export type CommandRule = keyof typeof commandRules
