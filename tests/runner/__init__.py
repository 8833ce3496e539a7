"""A faithful event source runner: AWS's delivery semantics, which the emulator gets wrong.

It takes its settings from the synthesised template, its records from a queue or a stream, and calls
the real handlers. Sources of the rules:
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
https://docs.aws.amazon.com/lambda/latest/dg/services-ddb-batchfailurereporting.html
https://docs.aws.amazon.com/lambda/latest/dg/invocation-eventfiltering.html
"""
