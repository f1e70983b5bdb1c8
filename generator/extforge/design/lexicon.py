"""Chinese terms of business and software, and what they are called in an English name.

Names of extensions are ASCII.  A term that is not here makes no part of a name; when none of a goal's terms is here,
the name is a stable hash, and a warning asks for a better one.  A dash marks words that say nothing in a name.
"""

from __future__ import annotations

from functools import cache

__all__ = ["GENERIC_TERMS", "english"]

_TERMS = """
季度 quarterly 年度 annual 月度 monthly 每月 monthly 每周 weekly 周报 weekly_report 日报 daily_report 月报 monthly_report 年报 annual_report
半年 half_year 每日 daily 每天 daily 实时 live 历史 history 会议 meeting 纪要 minutes 会议纪要 meeting_minutes 日程 schedule 日历 calendar
经营 business 运营 operations 销售 sales 采购 procurement 供应商 supplier 供应链 supply_chain 库存 inventory 仓库 warehouse 物流 logistics 快递 parcel
订单 order 发票 invoice 报价 quotation 报价单 quotation 合同 contract 协议 agreement 投标 bid 招标 tender 标书 bid 报关 customs 报关单 customs_declaration
财务 financial 会计 accounting 记账 bookkeeping 收支 income_expense 明细 details 预算 budget 成本 cost 费用 expense 报销 reimbursement 税务 tax 工资 payroll
薪酬 salary 绩效 performance 考勤 attendance 人事 hr 员工 employee 入职 onboarding 离职 offboarding 招聘 recruiting 简历 resume 面试 interview 培训 training
客户 customer 客服 customer_service 用户 user 会员 member 门店 store 客流 footfall 营销 marketing 广告 advertising 活动 campaign 推广 promotion 品牌 brand
产品 product 需求 requirements 项目 project 进度 progress 里程碑 milestone 风险 risk 质量 quality 测试 test 用例 case 缺陷 defect 故障 incident 复盘 review
代码 code 评审 review 审查 review 架构 architecture 部署 deployment 发布 release 版本 version 仓 repository 提交 commit 分支 branch 接口 api 日志 log 监控 monitoring
配置 config 生产 production 环境 environment 容器 container 服务 service 集群 cluster 服务器 server 网络 network 拓扑 topology 数据库 database 数据 data 只读 readonly
查询 query 检索 search 搜索 search 统计 statistics 分析 analysis 对比 comparison 预测 forecast 趋势 trend 图 chart 图表 chart 趋势图 trend_chart 甘特图 gantt_chart
折线图 line_chart 柱状图 bar_chart 饼图 pie_chart 流程图 flowchart 示意图 diagram 架构图 architecture_diagram 海报 poster 图片 image 截图 screenshot 视频 video 音频 audio
汇报 report 报告 report 报表 report 表格 table 台账 ledger 清单 list 文档 document 文件 file 文件名 filename 后缀 suffix 前缀 prefix 扩展名 extension 目录 folder
文件夹 folder 路径 path 工作区 workspace 命名 naming 格式 format 格式化 formatting 模板 template 规范 guide 指南 guide 约定 conventions 规则 rules 流程 process
最佳实践 best_practices 话术 scripts 知识 knowledge 知识库 knowledge_base 术语 glossary 决策 decision 选型 selection 口径 definitions 标准 standard 手册 handbook
论文 thesis 写作 writing 翻译 translation 摘要 summary 总结 summary 文章 article 新闻 news 邮件 email 通知 notification 消息 message 消息队列 message_queue 飞书 feishu
钉钉 dingtalk 微信 wechat 企业微信 wecom 天气 weather 预报 forecast 天气预报 weather_forecast 汇率 exchange_rate 股票 stock 行情 market 基金 fund 银行 bank 银行卡 bank_card
支付 payment 保险 insurance 理赔 claims 保单 policy 信贷 credit 贷款 loan 风控 risk_control 合规 compliance 审计 audit 法务 legal 法律 law 条款 clause 隐私 privacy
安全 security 权限 permission 密码 password 密钥 secret 手机号 phone_number 身份证 id_card 邮箱 email 敏感词 sensitive_word 敏感 sensitive 脱敏 masking 水印 watermark
医疗 medical 病历 medical_record 患者 patient 医院 hospital 药品 drug 用药 medication 诊断 diagnosis 护理 nursing 检验 lab_test 免责声明 disclaimer 教育 education 课程 course
学生 student 教师 teacher 试卷 exam 题库 question_bank 作业 homework 成绩 grades 教案 lesson_plan 农业 agriculture 气象 meteorology 能源 energy 电力 power 用电 power_usage
制造 manufacturing 设备 equipment 维修 maintenance 巡检 inspection 工单 work_order 生产线 production_line 工艺 process 物料 material 房产 property 租赁 lease 酒店 hotel 旅行 travel
行程 itinerary 机票 flight 酒店预订 hotel_booking 餐饮 catering 菜单 menu 食谱 recipe 游戏 game 赛事 match 体育 sports 政务 government 公文 official_document 档案 archive
工具 tool 工具调用 tool_call 调用 call 会话 session 对话 conversation 上下文 context 回答 answer 回复 reply 输出 output 输入 input 模型 model 提示 prompt 提示词 prompt 目标 goal
偏离 drift 纠偏 realign 自省 reflection 检查 check 校验 validation 验证 verification 提醒 reminder 告警 alert 用量 usage 额度 quota 次数 count 超时 timeout 缓存 cache 状态 status
结果 result 返回 result 内容 content 真实 real 真实性 authenticity 生成物 artifact 附件 attachment 签名 signature 签署 signing 归档 archive 备份 backup 导入 import 转换 conversion
合并 merge 拆分 split 注入 injection 动态 dynamic 日期 date 时间 time 地址 address 地图 map 位置 location 价格 price 竞品 competitor 市场 market 调研 research 问卷 survey 反馈 feedback
投诉 complaint 满意度 satisfaction 评估 evaluation 评价 review 审批 approval 申请 application 登记 registration 标签 label 分类 classification 关键词 keyword 语气 tone 风格 style
排班 shift_schedule 值班 on_call 交接 handover 车辆 vehicle 司机 driver 路线 route 碳排放 carbon_emission 环保 environmental 实验 experiment 样本 sample 专利 patent 商标 trademark
记录 record 记录表 record_sheet 提纲 outline 周会 weekly_meeting 施工 construction 要点 key_points 丢失 loss 操作 operation 留痕 audit_trail 追溯 tracing
危险 dangerous 高危 high_risk 黑名单 blocklist 白名单 allowlist 画像 profile 编码 coding 要求 requirements 邀请 invitation 费用报销 reimbursement 统计表 statistics_sheet
保存 save 写入 write 删除 delete 修改 edit 覆盖 overwrite 下载 download 上传 upload 执行 execution 命令 command 脚本 script 网页 webpage 页面 page 表单 form 字段 field 建表 table_design
生成 - 导出 - 制作 - 自动 - 自动化 - 支持 - 必须 - 需要 - 禁止 - 不得 - 不能 - 只能 - 统一 - 所有 - 每次 - 使用 - 进行 - 能力 - 功能 - 实现 - 提供 - 管理 management 的 - 在 - 中 - 和 - 与 - 带 - 为 - 是否 - 何时 when
"""
# Words that say what kind of thing it is, and not which.
GENERIC_TERMS = frozenset(
    "report document file data content result output input table list format check tool call api service user guide rules process"
    " summary real management image pdf excel word ppt pptx docx xlsx json csv md html svg png markdown".split()
)


@cache
def _terms() -> dict[str, str]:
    words = _TERMS.split()
    return dict(zip(words[::2], words[1::2], strict=True))


def english(text: str) -> tuple[list[str], float]:
    """Return the English of a Chinese run, longest terms first, and the share of it that is known."""
    terms = _terms()
    longest = max(map(len, terms))
    words: list[str] = []
    known = index = 0
    while index < len(text):
        for size in range(min(longest, len(text) - index), 0, -1):
            if found := terms.get(text[index : index + size]):
                words += [] if found == "-" else found.split("_")
                known += size
                index += size
                break
        else:
            index += 1
    return words, known / len(text) if text else 1.0
