"""The local server: the same user's other terminals reach the sessions of a running Laneway.

One unix socket for each serving process, JSON-RPC on lines. Its methods:

    sessions/list                              the live sessions of this process
    sessions/watch  {agent_id | …}             `session/snapshot`, then a `session/event` for each event;
                                               answered when the session is closed
    sessions/stop   {agent_id | …}             cancels the running turn and the waiting ones
    sessions/close  {agent_id | …}             closes the session, with its summary
    sessions/answer {agent_id | …, question_id, choice_id, values, words}
                                               answers an open question; only a person at a terminal may

A session is named by one of `agent_id`, `identity` and `thread_id`.

A process that an agent started may call none of these (see `origin`).

A notification `bridge/open {key}` with the key of a session makes its connection that session's
own: from then on it is served by what `open_bridge` of `LocalServer` returns (see `bridge`).
"""
